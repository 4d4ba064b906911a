/** The difference in three numbers: A, B, by how much, in percent. */

import type { CompareResponse, CompareSide } from "../../api/types.gen";
import {
  formatBytes,
  formatBytesExact,
  formatInteger,
  threeDigits,
} from "../../base/bytes";
import type { ByteUnit } from "../../base/bytes";
import { formatSigned, formatSignedExact } from "../../model/words/signed";
import { momentText } from "../../widgets/block_stack/axis";
import { changePercent } from "./rows/rows";

export function percentText(a: number, b: number): string {
  const percent = changePercent(a, b);
  if (!Number.isFinite(percent)) return "new";
  return `${percent > 0 ? "+" : ""}${threeDigits(percent)} %`;
}

function sideWords(
  { moment, reference, device, run }: CompareSide,
  sameRun: boolean,
): string {
  const words = [
    sameRun ? "" : run.name,
    reference.rank === null ? "" : `rank ${reference.rank}`,
    `device ${device}`,
    momentText(moment.moment),
    moment.step === null ? "" : `step ${formatInteger(moment.step)}`,
    moment.phase,
  ];
  return words.filter((word) => word !== "").join(", ");
}

const ROWS: readonly (readonly [string, string, (side: CompareSide) => number])[] = [
  [
    "Live",
    "Blocks as asked for, those that wait to be freed too",
    (side) => side.activeBytes,
  ],
  [
    "Allocated",
    "Live blocks without those that wait to be freed",
    (side) => side.allocatedBytes,
  ],
  ["Reserved", "What the allocator held of the device", (side) => side.reservedBytes],
];

export function Headline(props: {
  readonly answer: CompareResponse;
  readonly byteUnit: ByteUnit;
}) {
  const { answer, byteUnit } = props;
  const { a, b } = answer;
  const sameRun = a.run.id === b.run.id;
  const by = b.activeBytes - a.activeBytes;
  const sentence =
    by === 0
      ? "B holds as much as A"
      : `B holds ${formatBytes(Math.abs(by), byteUnit)} ${by > 0 ? "more" : "less"} than A`;
  return (
    <section class="compare-headline" aria-label="The difference">
      <p class="compare-sentence">
        <strong>{sentence}</strong>{" "}
        <span class="quiet">
          ({percentText(a.activeBytes, b.activeBytes)}) · A: {sideWords(a, sameRun)} ·
          B: {sideWords(b, sameRun)}
        </span>
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col" />
            <th scope="col" class="num">
              A
            </th>
            <th scope="col" class="num">
              B
            </th>
            <th scope="col" class="num">
              B − A
            </th>
            <th scope="col" class="num" />
          </tr>
        </thead>
        <tbody>
          {ROWS.map(([name, hint, of]) => (
            <tr key={name} title={hint}>
              <th scope="row">{name}</th>
              <td class="num" title={formatBytesExact(of(a))}>
                {formatBytes(of(a), byteUnit)}
              </td>
              <td class="num" title={formatBytesExact(of(b))}>
                {formatBytes(of(b), byteUnit)}
              </td>
              <td class="num" title={formatSignedExact(of(b) - of(a), "bytes")}>
                <b>{formatSigned(of(b) - of(a), "bytes", byteUnit)}</b>
              </td>
              <td class="num quiet">{percentText(of(a), of(b))}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">Blocks</th>
            <td class="num">{formatInteger(a.numBlocks)}</td>
            <td class="num">{formatInteger(b.numBlocks)}</td>
            <td class="num">
              <b>{formatSigned(b.numBlocks - a.numBlocks, "count")}</b>
            </td>
            <td class="num quiet">{percentText(a.numBlocks, b.numBlocks)}</td>
          </tr>
        </tbody>
      </table>
    </section>
  );
}
