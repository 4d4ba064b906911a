// A rule of ESLint: a noun that stands behind its count comes from counted() of base/bytes.ts,
// so that no page shows "1 ranks". Ordinals are no counts: "step 3 has no trace".

const PLURAL = /^\s+((?:[a-z-]+ ){0,2}[a-z]+s)\b(?![/:])/;
const ORDINAL = /\b(?:ranks?|steps?|torch|version)\s+$/i;
const NO_NOUNS = new Set(["as", "has", "is", "ms", "ns", "takes", "this", "was"]);
const MESSAGE =
  "Use counted(count, noun) of base/bytes.ts: this plural also stands behind a one.";

/** The literal, or the first words of a template; none of other expressions. */
const textOf = ({ quasis, value }) => quasis?.[0].value.cooked ?? value;

export const countedNouns = {
  meta: { type: "problem", schema: [], messages: { counted: MESSAGE } },
  create(context) {
    const services = context.sourceCode.parserServices;

    function isCount(node) {
      if (node.type === "CallExpression" && node.callee.name === "formatInteger")
        return true;
      const type = services.getTypeAtLocation(node);
      return services.program.getTypeChecker().typeToString(type) === "number";
    }

    function check(before, node, after) {
      const words = PLURAL.exec(after)?.[1].split(" ") ?? ["is"];
      if (words.some((word) => NO_NOUNS.has(word)) || ORDINAL.test(before)) return;
      if (isCount(node)) context.report({ node, messageId: "counted" });
    }

    return {
      TemplateLiteral({ quasis, expressions }) {
        expressions.forEach((node, i) => {
          check(quasis[i].value.cooked, node, quasis[i + 1].value.cooked);
        });
      },
      "JSXElement, JSXFragment"({ children }) {
        children.forEach((child, i) => {
          const [before, after] = [children[i - 1], children[i + 1]];
          if (child.type !== "JSXExpressionContainer" || after?.type !== "JSXText")
            return;
          check(
            before?.type === "JSXText" ? before.value : "",
            child.expression,
            after.value,
          );
        });
      },
      'ConditionalExpression[test.operator="==="][test.right.value=1]'(node) {
        const [one, many] = [textOf(node.consequent), textOf(node.alternate)];
        if (many === `${one}s` || /^(?:1|a|one) /i.test(one))
          context.report({ node, messageId: "counted" });
      },
    };
  },
};
