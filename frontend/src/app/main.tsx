import { render } from "preact";
import { Client } from "../api/client";
import { App } from "./app";
import { findHostPage } from "./host_page";
import { aheadOf, findTab, preload } from "./pages";
import "../base/tokens.css";
import "./controls.css";
import "./app.css";

const root = document.getElementById("memboard");
if (root !== null) {
  const client = new Client();
  const host = findHostPage();
  const place = host.place();
  const tab = findTab(place.view);
  // Code and answers of the first picture load together.
  client.ahead("runs", {});
  for (const [route, query] of aheadOf(tab, place)) client.ahead(route, query);
  preload(tab);
  render(<App client={client} host={host} />, root);
}
