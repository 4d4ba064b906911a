import { describe, expect, it } from "vitest";
import {
  EDITORS,
  editorMessage,
  isFile,
  linkOf,
  mappedPath,
  mappingProblem,
  parseFrame,
  parseMapping,
  templateProblem,
  USUAL_TEMPLATE,
  type SourceSettings,
} from "./source_link";

const PLACE = { filename: "/repo/my model/train.py", line: 12, name: "main" };

function settings(template: string, mapping = ""): SourceSettings {
  return { template, mapping: parseMapping(mapping) };
}

describe("parseFrame", () => {
  it.each([
    ["/repo/train.py(12): main", "/repo/train.py", 12, "main"],
    ["C:\\repo\\a (1)\\b.py(3): f(x): y", "C:\\repo\\a (1)\\b.py", 3, "f(x): y"],
    [
      "torch/nn/modules/module.py(1784): _call_impl",
      "torch/nn/modules/module.py",
      1784,
      "_call_impl",
    ],
    ["a.py(0): <module>", "a.py", 1, "<module>"],
  ])("%s", (frame, filename, line, name) =>
    expect(parseFrame(frame)).toEqual({ filename, line, name }),
  );

  it.each([
    "nn.Module: Linear_0",
    "<built-in method linear of type object at 0x7f>",
    "<string>(1): <module>",
    "<frozen importlib._bootstrap>(24): load",
    "",
    "(3): f",
    "a.py(99999999999999): f",
  ])("%s stands in no file", (frame) => expect(parseFrame(frame)).toBeNull());
});

describe("mappings", () =>
  it("take the longest beginning that fits, and say which line is wrong", () => {
    const mapping = parseMapping(
      "/w/=>/home/me/\n/w/torch/ => /opt/torch/\n\nnonsense",
    );
    expect(mapping).toHaveLength(2);
    expect(mappedPath("/w/torch/nn.py", mapping)).toBe("/opt/torch/nn.py");
    expect(mappedPath("/w/a.py", mapping)).toBe("/home/me/a.py");
    expect(mappedPath("/x/a.py", mapping)).toBe("/x/a.py");
    const relative = parseMapping("=>/home/me/\ntorch/=>/opt/torch/");
    expect(mappedPath("model.py", relative)).toBe("/home/me/model.py");
    expect(mappedPath("torch/nn.py", relative)).toBe("/opt/torch/nn.py");
    expect(mappedPath("/x/a.py", relative)).toBe("/x/a.py");
    expect(mappedPath("C:\\a.py", relative)).toBe("C:\\a.py");
    expect(mappingProblem("/w/=>/home/me/\n")).toBeNull();
    expect(mappingProblem("nonsense")).toContain('"nonsense"');
  }));

describe("linkOf", () => {
  it.each([
    [PLACE.filename, "vscode://file/repo/my%20model/train.py:12"],
    ["C:\\repo\\train.py", "vscode://file/C:/repo/train.py:12"],
    ["/a/#?&%2e%2e/b.py", "vscode://file/a/%23%3F%26%252e%252e/b.py:12"],
    ["/a/$&/\ud800.py", "vscode://file/a/%24%26/%EF%BF%BD.py:12"],
  ])("%s opens in VS Code", (filename, link) =>
    expect(linkOf({ ...PLACE, filename }, settings(USUAL_TEMPLATE))).toBe(link),
  );

  it.each(["train.py", "/a/../../etc/passwd", "/a/./b.py", "\\..\\x", "/"])(
    "%s opens nowhere",
    (filename) =>
      expect(linkOf({ ...PLACE, filename }, settings(USUAL_TEMPLATE))).toBeNull(),
  );

  it.each([
    [12, "pycharm://open?file=/a/x%26line%3D9/my%20b.py&line=12"],
    [0, "pycharm://open?file=/a/x%26line%3D9/my%20b.py"],
  ])("line %s opens in PyCharm", (line, link) => {
    const place = { ...PLACE, filename: "/a/x&line=9/my b.py", line };
    expect(linkOf(place, settings(EDITORS.PyCharm))).toBe(link);
    expect(
      linkOf({ ...place, filename: "b.py" }, settings(EDITORS.PyCharm)),
    ).toBeNull();
  });

  it("goes to a web page, and cannot leave its host", () => {
    const web = settings(
      "https://git.example/me/repo/blob/main/{path}#L{line}",
      "/repo/=>",
    );
    expect(linkOf(PLACE, web)).toBe(
      "https://git.example/me/repo/blob/main/my%20model/train.py#L12",
    );
    const evil = linkOf({ ...PLACE, filename: "//evil.example/x.py" }, web);
    expect(new URL(evil ?? "").host).toBe("git.example");
    expect(linkOf({ ...PLACE, filename: "/repo/../../x.py" }, web)).toBeNull();
  });

  it.each([
    "javascript:alert(1)//{path}",
    "data:text/html,{path}",
    "{path}",
    "https://{path}/",
    "https://a{path}.example/",
    "vscode://some.extension/{path}",
    "pycharm://open?command={path}",
    "pycharm://evil?file=/{path}",
    " https://a.example/{path}",
    "https://a.example/",
  ])("refuses %s", (template) => {
    expect(templateProblem(template)).not.toBeNull();
    expect(linkOf(PLACE, settings(template))).toBeNull();
  });
});

describe("a place whose line is not known", () => {
  const place = { ...PLACE, line: 0 };

  it("opens its file", () => {
    const web = settings("https://git.example/{path}#L{line}", "/repo/=>");
    expect(linkOf(place, web)).toBe("https://git.example/my%20model/train.py");
    expect(linkOf(place, settings(USUAL_TEMPLATE))).toBe(
      "vscode://file/repo/my%20model/train.py",
    );
    expect(editorMessage(place, []).line).toBe(0);
  });

  it("is in a file only where there is one", () => {
    expect(["/a.py", "a.py", "C:\\a.py"].every(isFile)).toBe(true);
    expect(["", "<string>", "??"].some(isFile)).toBe(false);
  });
});

describe("editorMessage", () =>
  it("counts lines from 0 and maps the path", () =>
    expect(editorMessage(PLACE, parseMapping("/repo/=>/here/"))).toEqual({
      filename: "/here/my model/train.py",
      line: 11,
    })));
