/** What the memory at the peak is made of, against what there is, and who holds it. */

import type {
  PeakComposition,
  PeakCompositionResponse,
  PeakPart,
} from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatShare,
  type ByteUnit,
} from "../../base/bytes";
import type { Theme } from "../../base/tokens";
import { categoryColour, categoryLabel, groupNamed } from "../../model/category";
import { BarRows, type BarRow } from "../../widgets/bar_rows/bar_rows";
import { cut, withTail } from "../../widgets/cut_text/cut_text";
import { openPlace } from "../../widgets/finding/place";
import { Icon } from "../../widgets/icon/icon";
import type { ViewProps } from "../shared/view_props";
import { PartBar, type Part } from "../time/profiled/part_bar";

/** Of a device less full than this, the peak would be a sliver. */
const LEAST_SHARE = 0.1;

export function PeakPanel(props: {
  readonly view: ViewProps;
  readonly answer: PeakCompositionResponse;
}) {
  const { composition, how } = props.answer;
  if (composition !== null) return <Composition view={props.view} of={composition} />;
  if (how === "") return null;
  return (
    <section aria-label="Memory at the peak">
      <h2>Memory at the peak</h2>
      <p>{how}</p>
    </section>
  );
}

function Composition(props: {
  readonly view: ViewProps;
  readonly of: PeakComposition;
}) {
  const { of, view } = props;
  const { theme, byteUnit } = view;
  const parts = peakParts(of, theme);
  const format = (bytes: number): string => formatBytes(bytes, byteUnit);
  const category = (part: PeakPart) => categoryLabel(part.label);
  return (
    <>
      <section aria-label={of.title}>
        <header class="row">
          <h2>{of.title}</h2>
          <button
            type="button"
            class="text-button end"
            onClick={() => openPlace(of.place, view)}
          >
            {of.place.label}
            <Icon name="right" sizePx={14} />
          </button>
        </header>
        <p>{of.sentence}</p>
        <PartBar label="" parts={parts} format={format} />
        <BarRows
          label="Categories at the peak"
          rows={partRows(of, of.categories, theme, byteUnit, category)}
        />
        <p class="quiet small">{against(of, byteUnit)}</p>
      </section>
      <section aria-label={of.holdersTitle}>
        <h2>{of.holdersTitle}</h2>
        <BarRows
          label={of.holdersTitle}
          rows={partRows(of, of.holders, theme, byteUnit, ({ label }) => {
            // The end of a module's name tells it, of a line its file and number.
            if (of.place.page !== "modules") {
              return <code>{label === "" ? "no stack recorded" : label}</code>;
            }
            return <code>{cut(withTail(label))}</code>;
          })}
        />
      </section>
      {of.notRecorded.length > 0 && (
        <section aria-label="Not recorded">
          <h2>Not recorded</h2>
          <ul class="not-recorded">
            {of.notRecorded.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** Categories, then what is reserved beyond them, then what is free on the device. */
export function peakParts(of: PeakComposition, theme: Theme): readonly Part[] {
  const parts = of.categories.map((part): Part => ({
    name: part.label,
    label: categoryLabel(part.label),
    help: "",
    colour: categoryColour(theme, groupNamed(part.category)),
    value: part.bytes,
  }));
  const used = Math.max(of.reservedBytes ?? 0, of.bytes);
  const isOnDevice =
    of.capacityBytes !== null && used >= LEAST_SHARE * of.capacityBytes;
  const rest: readonly Part[] = [
    {
      name: "reserved",
      label: "Reserved, not in use",
      help: "",
      colour: "var(--border)",
      value: used - of.bytes,
    },
    {
      name: "free",
      label: "Free, or used outside torch",
      help: "",
      colour: "var(--grid)",
      value: isOnDevice ? of.capacityBytes - used : 0,
    },
  ];
  return [...parts, ...rest.filter(({ value }) => value > 0)];
}

function partRows(
  { bytes }: PeakComposition,
  parts: readonly PeakPart[],
  theme: Theme,
  byteUnit: ByteUnit,
  labelOf: (part: PeakPart) => BarRow["label"],
): readonly BarRow[] {
  return parts.map((part, index) => ({
    key: `${part.label} ${index}`,
    label: labelOf(part),
    title: titleOf(part),
    share: part.bytes / bytes,
    background: categoryColour(theme, groupNamed(part.category)),
    value: formatBytes(part.bytes, byteUnit),
    exact: formatBytesExact(part.bytes),
    note: formatShare(part.bytes, bytes),
  }));
}

/** A category's row is named by it alone. */
function titleOf({ label, category }: PeakPart): string {
  const name = categoryLabel(category);
  return label === category ? name : `${label}, ${name}`;
}

function against(of: PeakComposition, byteUnit: ByteUnit): string {
  const { reservedBytes: reserved, capacityBytes: capacity } = of;
  const used = reserved ?? of.bytes;
  const size = formatBytes(used, byteUnit);
  const subject = reserved === null ? `The peak is ${size}` : `${size} reserved`;
  if (capacity === null) return reserved === null ? "" : `${subject} at this moment.`;
  const share = formatShare(used, capacity);
  return `${subject}: ${share} of the device's ${formatBytes(capacity, byteUnit)}.`;
}
