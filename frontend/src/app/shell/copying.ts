import { copyText } from "../../base/browser";
import type { RunSummary } from "../../api/types.gen";
import { plainText } from "../../model/words/markdown";
import { originOf } from "../../model/words/origin";
import type { HostPage } from "../host_page";
import type { Place } from "../location";

/** What the clipboard gets, and what the page says of it. */
export function copying(
  host: Pick<HostPage, "link">,
  here: () => Place,
  run: RunSummary | null,
  say: (sentence: string) => void,
) {
  // The run that opens first may be another one tomorrow.
  const link = (): string => host.link({ ...here(), run: run?.id ?? "" });
  const copy = async (text: string, copied: string, refused: string): Promise<void> =>
    say((await copyText(text)) ? copied : refused);
  return {
    copyLink: (): void => {
      const refused = "The browser refused to copy; use the address bar";
      void copy(link(), "Link copied", refused);
    },
    copyMarkdown: (markdown: string, rank?: number): void => {
      const source = run === null ? "" : sourceLine(run, rank ?? here().rank, link());
      void copy(
        `${markdown}\n\n${source}\n`,
        "Copied as Markdown",
        "The browser refused to copy; use Export",
      );
    },
  };
}

/** A copy is read without its page. */
function sourceLine(run: RunSummary, rank: number | null, link: string): string {
  const { unreal } = originOf(run);
  const parts = [`Run ${plainText(run.name)}${unreal === null ? "" : ` (${unreal})`}`];
  if (rank !== null) parts.push(`rank ${rank}`);
  return `${parts.join(", ")}: <${link}>`;
}
