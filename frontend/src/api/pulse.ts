/**
 * Whether anybody can see the page. TensorBoard keeps the iframes of other tabs running
 * at full speed but gives them no height, so `document.hidden` alone is not enough.
 */

import { listen } from "../base/browser";

export interface Pulse {
  readonly visible: () => boolean;
  /** Calls back when the page comes into sight; the result stops that. */
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
