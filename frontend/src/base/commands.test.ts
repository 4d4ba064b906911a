import { describe, expect, it } from "vitest";
import { Commands, keyName, type Command } from "./commands";

function command(id: string, key: string): Command {
  return { id, key, label: id, group: "Test", run: () => undefined };
}

const NO_MODIFIERS = { ctrlKey: false, metaKey: false, altKey: false };

describe("Commands", () => {
  it("lets the newest registration have a key, and gives it back after", () => {
    const commands = new Commands();
    commands.register([command("shell.fit", "f")]);
    const takeBack = commands.register([command("view.fit", "f")]);
    expect(commands.forKey("f")?.id).toBe("view.fit");
    takeBack();
    expect(commands.forKey("f")?.id).toBe("shell.fit");
    expect(commands.all.value.map((listedCommand) => listedCommand.id)).toEqual([
      "shell.fit",
    ]);
  });

  it("takes back only its own, whatever the order", () => {
    const commands = new Commands();
    const first = commands.register([command("a", "x")]);
    commands.register([command("b", "y")]);
    first();
    first();
    expect(commands.all.value.map((listedCommand) => listedCommand.id)).toEqual(["b"]);
  });
});

describe("a key with Shift", () =>
  it("is a command of its own where there is one, else the same as without", () => {
    const commands = new Commands();
    commands.register([
      command("one", "ArrowLeft"),
      command("ten", "Shift+ArrowLeft"),
      command("fit", "f"),
    ]);
    expect(commands.forKey("ArrowLeft")?.id).toBe("one");
    expect(commands.forKey("ArrowLeft", true)?.id).toBe("ten");
    expect(commands.forKey("f", true)?.id).toBe("fit");
    expect(commands.forKey("g", true)).toBeUndefined();
  }));

describe("keyName", () => {
  it("names keys as commands write them", () => {
    expect(keyName({ key: "C", ...NO_MODIFIERS })).toBe("c");
    expect(keyName({ key: "?", ...NO_MODIFIERS })).toBe("?");
    expect(keyName({ key: "K", ...NO_MODIFIERS, metaKey: true })).toBe("Ctrl+k");
    expect(keyName({ key: "ArrowLeft", ...NO_MODIFIERS })).toBe("ArrowLeft");
  });

  it("leaves Alt to the browser", () =>
    expect(keyName({ key: "d", ...NO_MODIFIERS, altKey: true })).toBeNull());
});
