import { IconButton } from "../icon/icon";

/** The buttons of a drawing that do what W, S and F do. */
export function ZoomButtons(props: {
  /** -1 zooms in, +1 out. */
  readonly zoom: (sign: number) => void;
  readonly fit: () => void;
}) {
  return (
    <>
      <IconButton label="Zoom out (S)" icon="minus" onClick={() => props.zoom(1)} />
      <IconButton label="Zoom in (W)" icon="plus" onClick={() => props.zoom(-1)} />
      <IconButton label="Show everything (F)" icon="fit" onClick={props.fit} />
    </>
  );
}
