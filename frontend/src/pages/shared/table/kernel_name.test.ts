import { describe, expect, it } from "vitest";
import { cutMiddle, foldTemplates, nameCells, shortNames } from "./kernel_name";

describe("foldTemplates", () => {
  it.each([
    ["void ampere_sgemm<float, 32>(int)", "ampere_sgemm<…>"],
    ["ampere_sgemm<float, map<int, 2>>_nn", "ampere_sgemm<…>_nn"],
    [
      "void at::native::(anonymous namespace)::cat<f<int>, 4>(a, b)",
      "at::native::cat<…>",
    ],
    ["void f<a>::g<(b)1>(int*, float)", "f<…>::g<…>"],
    ["Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"],
    ["ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"],
    [
      "autograd::engine::evaluate_function: MulBackward0",
      "autograd::engine::evaluate_function: MulBackward0",
    ],
    [
      "void at::vec<4, f(T&)::{lambda()#1}::operator()() const::{lambda(x)#1}, A<char*, 2> >(int, g()::operator()() const, A<char*, 2>)",
      "at::vec<…>",
    ],
    ["void broken<int(", "void broken<int("],
    ["", ""],
  ])("folds %s", (name, folded) => {
    expect(foldTemplates(name)).toBe(folded);
  });
});

describe("cutMiddle", () =>
  it("keeps the start and the end", () => {
    expect(cutMiddle("abcdefghij", 10)).toBe("abcdefghij");
    expect(cutMiddle("abcdefghijk", 6)).toBe("abc…jk");
    expect(cutMiddle("x".repeat(500))).toHaveLength(90);
  }));

describe("shortNames", () => {
  it("says in what names differ that are folded alike", () => {
    expect(
      shortNames([
        "void vec<4, at::native::FillFunctor<float>>(int)",
        "void vec<4, at::native::AddFunctor<float>>(int)",
        "void other<float>(int)",
      ]),
    ).toEqual(["vec<…> · FillFunctor", "vec<…> · AddFunctor", "other<…>"]);
  });

  it("gives rows of the same kernel the same name", () => {
    expect(shortNames(["gemm<int>(a)", "gemm<int>(a)"])).toEqual([
      "gemm<…>",
      "gemm<…>",
    ]);
  });

  it("stays short whatever names hold", () => {
    const long = (n: string): string =>
      `void ${"a".repeat(300)}<${n.repeat(200)}>(int)`;
    for (const name of shortNames([long("b"), long("c")])) {
      expect(name.length).toBeLessThanOrEqual(90);
    }
  });
});

describe("nameCells", () =>
  it("have the whole name where they are pointed at, and an end that stays", () => {
    const names = [
      "void vec<A>(int)",
      "void vec<B>(int)",
      "aten::cudnn_convolution_backward_weight",
    ];
    const cell = nameCells(names);
    expect(cell(names[0] ?? "", 0)).toEqual({
      text: "vec<…> · A",
      title: "void vec<A>(int)",
      tail: " · A",
    });
    expect(cell(names[2] ?? "", 2).tail).toBe("ackward_weight");
  }));
