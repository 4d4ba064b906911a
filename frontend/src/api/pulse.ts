/** Hidden iframes of TensorBoard run without height; `document.hidden` stays false. */

import { listen } from "../base/browser";

export interface Pulse {
  readonly visible: () => boolean;
  readonly onShown: (callback: () => void) => () => void;
}

export const pagePulse: Pulse = {
  visible: () => !document.hidden && window.innerHeight > 0,
  onShown: (callback) => {
    let before = pagePulse.visible();
    const check = (): void => {
      const now = pagePulse.visible();
      if (now && !before) callback();
      before = now;
    };
    return listen(window, ["resize", "visibilitychange"], check);
  },
};
