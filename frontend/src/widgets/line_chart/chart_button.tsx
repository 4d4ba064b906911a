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
