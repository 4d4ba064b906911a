import { IconButton } from "../../../widgets/icon/icon";

export function CloseDetails({ close }: { readonly close: () => void }) {
  return (
    <IconButton
      icon="cross"
      label="Close the details"
      title="Close the details (Esc)"
      onClick={close}
    />
  );
}
