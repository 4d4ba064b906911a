/** The nodes that files are made of, on the page. */

import { createElement, type ComponentChild } from "preact";
import type { Figure } from "../../../widgets/export/source";
import { svg, svgDocument, type SvgNode } from "../../../widgets/export/svg";

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

/** Nodes of a page's picture as one of their own, with its title above. */
export function figureOf(
  title: string,
  nodes: readonly SvgNode[],
  widthPx: number,
  heightPx: number,
  background: string,
  text: string,
): Figure {
  return {
    widthPx,
    heightPx: heightPx + 32,
    svg: svgDocument(
      widthPx,
      heightPx + 32,
      title,
      svg("rect", {
        x: 0,
        y: 0,
        width: widthPx,
        height: heightPx + 32,
        fill: background,
      }),
      svg("text", { x: 8, y: 20, "font-size": 14, fill: text }, title),
      svg("g", { transform: "translate(0 32)" }, ...nodes),
    ),
  };
}
