/** The ranks the user chose, as every view reads them. */

export interface RankChoice {
  /** `rank=12`: the page of one rank; null shows all. */
  readonly rank: number | null;
  /** `ranks=0-7,64`: the ranks to draw, as the routes read them; "" means all. */
  readonly filter: string;
  /** `pinned=12,40`: always drawn as lines. */
  readonly pinned: readonly number[];
}
