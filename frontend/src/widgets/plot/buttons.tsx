import { Icon, type IconName } from "../icon/icon";

/** A small button of a drawing's tool bar. */
export function ChartButton(props: {
  readonly label: string;
  readonly icon: IconName;
  readonly onClick: () => void;
  readonly pressed?: boolean;
}) {
  return (
    <button
      type="button"
      class="icon-button small"
      aria-label={props.label}
      title={props.label}
      aria-pressed={props.pressed}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  );
}

/** The buttons of a drawing that do what W, S and F do. */
export function ZoomButtons(props: {
  /** -1 zooms in, +1 out. */
  readonly zoom: (sign: number) => void;
  readonly fit: () => void;
}) {
  return (
    <>
      <ChartButton label="Zoom out (S)" icon="minus" onClick={() => props.zoom(1)} />
      <ChartButton label="Zoom in (W)" icon="plus" onClick={() => props.zoom(-1)} />
      <ChartButton label="Show everything (F)" icon="fit" onClick={props.fit} />
    </>
  );
}
