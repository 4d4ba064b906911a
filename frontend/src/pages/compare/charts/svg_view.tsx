/** The nodes that files are made of, on the page. */

import { createElement, type ComponentChild } from "preact";
import type { SvgNode } from "../../../widgets/export/svg";

function drawn(node: SvgNode | string, key: number): ComponentChild {
  if (typeof node === "string") return node;
  const attributes = Object.fromEntries(
    Object.entries(node.attributes).filter(([, value]) => value !== null),
  );
  return createElement(node.name, { ...attributes, key }, node.children.map(drawn));
}

export function SvgView(props: {
  readonly label: string;
  readonly nodes: readonly SvgNode[];
  readonly widthPx: number;
  readonly heightPx: number;
}) {
  const { label, nodes, widthPx, heightPx } = props;
  return (
    <svg
      class="svg-view"
      width={widthPx}
      height={heightPx}
      viewBox={`0 0 ${widthPx} ${heightPx}`}
      role="img"
      aria-label={label}
    >
      {nodes.map(drawn)}
    </svg>
  );
}
