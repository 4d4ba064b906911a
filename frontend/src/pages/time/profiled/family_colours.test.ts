import { describe, expect, it } from "vitest";
import type { ProfileRole, TraceFamily } from "../../../api/types.gen";
import { worst } from "../../../render/test_sight";
import { familyColour } from "./family_colours";
import { ROLE_WORDS, roleColour } from "./roles";

describe("family colours", () =>
  it.each([
    ["light", 10.6],
    ["dark", 9],
  ] as const)("are told apart by every kind of sight in %s", (theme, least) => {
    const drawn = [
      ...["kernel", "operator", "runtime", "communication", "memory"],
      ...["forward", "backward", "optimizer", "dataloader", "other"],
    ] as readonly TraceFamily[];
    expect(
      worst(drawn.map((family) => familyColour(theme, family))),
    ).toBeGreaterThanOrEqual(least);
    const roles = Object.keys(ROLE_WORDS) as ProfileRole[];
    expect(worst(roles.map((role) => roleColour(theme, role)))).toBeGreaterThanOrEqual(
      least,
    );
    expect(roleColour(theme, "kernel")).toBe(familyColour(theme, "kernel"));
  }));
