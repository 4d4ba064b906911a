/** The page starts here. */

import { render } from "preact";
import { Client } from "../api/client";
import { App } from "./app";
import { findHostPage } from "./host_page";
import "../base/fonts.css";
import "../base/tokens.css";
import "./app.css";
import "./controls.css";

const root = document.getElementById("memboard");
if (root !== null) {
  render(<App client={new Client()} host={findHostPage()} />, root);
}
