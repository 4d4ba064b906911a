/** The cross of a panel of details. */

import { Icon } from "../../../widgets/icon/icon";

export function CloseDetails({ close }: { readonly close: () => void }) {
  return (
    <button
      type="button"
      class="icon-button small"
      aria-label="Close the details"
      title="Close the details (Esc)"
      onClick={close}
    >
      <Icon name="cross" />
    </button>
  );
}
