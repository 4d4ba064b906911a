/** Opens on hover and focus; its text describes the control for screen readers. */

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import "./tip.css";

interface Spot {
  readonly xPx: number;
  readonly yPx: number;
}

const MARGIN_PX = 8;

interface TipProps {
  readonly text: ComponentChildren;
  readonly children: ComponentChildren;
  /** For text that is not a control, so that the keyboard reaches it. */
  readonly focusable?: boolean;
  readonly class?: string;
}

export function Tip(props: TipProps) {
  const anchor = useRef<HTMLSpanElement>(null);
  const [open, setOpen] = useState(false);
  const id = useId();
  const show = (): void => setOpen(true);
  const hide = (): void => setOpen(false);
  return (
    <span
      ref={anchor}
      class={`tip-anchor ${props.class ?? ""}`}
      tabIndex={props.focusable === true ? 0 : undefined}
      aria-describedby={open ? id : undefined}
      onMouseEnter={show}
      onMouseLeave={hide}
      onFocusIn={show}
      onFocusOut={hide}
      onKeyDown={(event) => {
        if (event.key === "Escape") hide();
      }}
    >
      {props.children}
      {open && <Bubble id={id} anchor={anchor} text={props.text} />}
    </span>
  );
}

function Bubble(props: {
  readonly id: string;
  readonly anchor: { readonly current: HTMLSpanElement | null };
  readonly text: ComponentChildren;
}) {
  const bubble = useRef<HTMLSpanElement>(null);
  const [spot, setSpot] = useState<Spot | null>(null);
  useLayoutEffect(() => {
    const from = props.anchor.current?.getBoundingClientRect();
    const own = bubble.current?.getBoundingClientRect();
    if (from === undefined || own === undefined) return;
    setSpot(placeBubble(from, own, window.innerWidth, window.innerHeight));
  }, [props.anchor, props.text]);
  const style =
    spot === null
      ? { visibility: "hidden", left: "0px", top: "0px" }
      : { left: `${spot.xPx}px`, top: `${spot.yPx}px` };
  return (
    <span ref={bubble} id={props.id} role="tooltip" class="tip" style={style}>
      {props.text}
    </span>
  );
}

type Box = Pick<DOMRect, "left" | "top" | "bottom" | "width" | "height">;

/** Below the anchor, above it where there is no room, never off the window. */
export function placeBubble(
  anchor: Box,
  bubble: Pick<Box, "width" | "height">,
  windowWidthPx: number,
  windowHeightPx: number,
): Spot {
  const centred = anchor.left + anchor.width / 2 - bubble.width / 2;
  const rightmost = windowWidthPx - bubble.width - MARGIN_PX;
  const below = anchor.bottom + 6;
  const fits = below + bubble.height + MARGIN_PX <= windowHeightPx;
  return {
    xPx: Math.max(MARGIN_PX, Math.min(centred, rightmost)),
    yPx: fits ? below : Math.max(MARGIN_PX, anchor.top - 6 - bubble.height),
  };
}
