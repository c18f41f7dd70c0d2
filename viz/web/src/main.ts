// Mission control page: its first view, which has the bodies in the picture and in the list. `workplace.ts` has the other
// parts, which are loaded after the first picture.

import type { Configurator } from "./configurator";
import { ConnectionBanner } from "./connection_banner";
import { h, toggleClass } from "./dom";
import { DrawingLoop } from "./drawing_loop";
import { ErrorBanner } from "./error_banner";
import type { HelloMessage, ServerMessage } from "./page_protocol";
import { SceneStore } from "./scene_store";
import { SidePanels } from "./side_panels";
import { Stage } from "./stage";
import { TextSize } from "./text_size";
import { Theme } from "./theme";
import { Toolbar } from "./toolbar";
import { FleetList } from "./vehicle_list";
import { ViewerSocket, type Frame } from "./websocket";
import type { Workplace } from "./workplace";

// events after which the picture may change
const WAKING = "resize keydown keyup pointerdown pointermove pointerup wheel hashchange focus input change".split(" ");

// -- the other parts, once they are loaded ---------------------------------------------------------------------------

let workplace: Workplace | null = null,
  furnishing: Promise<void> | null = null;
const waiting: ((there: Workplace) => void)[] = []; // what the other parts shall do

/** Let the other parts do something, now or when they are loaded. */
function later(act: (there: Workplace) => void): void {
  if (workplace) act(workplace);
  else waiting.push(act);
}

/** Load the other parts, once. */
function furnish(): Promise<void> {
  return (furnishing ??= import("./workplace").then(
    (m) => {
      const there = m.furnish({
        root,
        store,
        errors,
        loop,
        stage,
        toolbar,
        fleet,
        theme,
        connection,
        panels,
        link,
        bottom,
        right,
      });
      workplace = there;
      for (const act of waiting.splice(0)) errors.part("a message from the viewer's server", () => act(there));
      wake();
    },
    (error: unknown) => errors.fail("the tools and panels", error),
  ));
}

// -- parts of the page ---------------------------------------------------------------------------------------------

const root = h("div", { id: "app" }),
  store = new SceneStore(),
  errors = new ErrorBanner();
const loop = new DrawingLoop({
  busy: () => stage.busy() || workplace?.isBusy() || !store.settled(),
  picture: () => errors.part("the page", draw),
  tables: () => errors.part("the page", tables),
  rest: () => {
    errors.part("the 3D view", () => stage.rest());
    tables();
    toolbar.rest();
  },
});
const wake = (): void => loop.wake(),
  choose = (row: number | null): void => later((w) => w.choose(row));
let configurator: Configurator | null = null;
const theme = new Theme((dark) => {
  wake();
  stage.theme(dark);
  workplace?.recolour();
  configurator?.recolour();
});
const preferences = h(
  "div",
  { class: "group" },
  new TextSize(wake).element,
  h("button", { title: "Switch between light and dark (Shift+L)", onclick: () => theme.toggle() }, "◐"),
);
const stage = new Stage(store, choose, (row) => later((w) => w.openOnboard(row)), wake),
  toolbar = new Toolbar(store, (verb, value) => link.control(verb, value), preferences),
  fleet = new FleetList(store, choose),
  panels = new SidePanels(root);
const connection = new ConnectionBanner((lost) => {
  store.lost = lost;
  toolbar.clients();
  toggleClass(root, "lost", lost !== "");
  later((w) => w.lose(lost !== ""));
  wake();
});
const link = new ViewerSocket(
  takeFrame,
  takeMessage,
  (on) => connection.connection(on),
  (picture) =>
    later((w) => {
      w.picture(picture);
      wake();
    }),
  (tile) => {
    store.mosaic.take(tile);
    wake();
  },
  (part, error) => errors.fail(part, error),
);
let pictured = false, // bodies have been drawn
  detailed = false; // the details of the scene have been requested

// -- what they do together -----------------------------------------------------------------------------------------

/** Take a message from the server. The first view needs three of them. */
function takeMessage(m: ServerMessage): void {
  switch (m.type) {
    case "hello":
      store.hello = m;
      greet(m);
      later((w) => w.greet(m));
      break;
    case "scene":
      store.scene = m.scene;
      stage.rebuild(theme.dark);
      connection.warn(m.scene.warning ?? "");
      later((w) => w.restore());
      break;
    case "roster": {
      const isFirst = store.bodies.size === 0,
        { joined, left } = store.roster(m.bodies);
      later((w) => (isFirst ? w.roster(m.bodies, [], []) : w.roster(m.bodies, joined, left)));
      break;
    }
    default:
      later((w) => w.take(m));
      return;
  }
  wake();
}

/** Begin a session with the viewer's server. */
function greet(hello: HelloMessage): void {
  const { enc, tiles } = stage.chart;
  tiles.info = hello.tiles;
  if (hello.chart && !enc.isLoaded)
    void enc.load().then(wake, (error: unknown) => errors.fail("the electronic chart", error));
  toolbar.permit(hello);
  permitModels();
  document.title = hello.name ? `${hello.name} – WaVeSim` : "WaVeSim";
  if (hello.kind !== "none") return;
  location.hash = "#configure";
  void furnish();
}

/** Take a frame from the server; do not draw if only the server statistics changed. */
function takeFrame(f: Frame): void {
  const last = store.last,
    same =
      last !== null &&
      last.jumps === f.jumps &&
      last.time === f.time &&
      last.state === f.state &&
      last.roster === f.roster &&
      last.bodies.length === f.bodies.length &&
      last.bodies.every((v, k) => v === f.bodies[k]);
  store.frame(f);
  if (!same) wake();
  else if (!loop.turning) errors.part("the toolbar", numbers);
}

function draw(): void {
  errors.part("the frame", () => store.now());
  workplace?.requestMosaics();
  stage.draw(errors);
  if (store.rows.length && !pictured) {
    pictured = true;
    performance.mark("first picture");
    loadScene();
  } else if (store.last) void furnish();
  if (workplace && store.last && !detailed) {
    detailed = true;
    link.details();
  }
  workplace?.drawn();
}

/** Load what the first picture does not need. */
function loadScene(): void {
  void furnish();
  void stage.load().then(wake, (error: unknown) => errors.fail("the 3D view", error));
}

function numbers(): void {
  toolbar.update(loop.rate);
  workplace?.numbers();
}

function tables(): void {
  errors.update();
  errors.part("the toolbar", numbers);
  errors.part("the fleet list", () => fleet.update());
  workplace?.tables();
  stage.updateButtons();
}

// -- the page ------------------------------------------------------------------------------------------------------

stage.assemble(h("div", { class: "banners" }, connection.element, connection.warning, errors.element));
const bottom = h("div", { id: "bottom", class: "coming" }),
  right = h("div", { id: "right" });
root.append(toolbar.element, h("div", { id: "left" }, fleet.element), stage.element, bottom, right);
document.body.append(root);
stage.theme(theme.dark);
for (const what of WAKING) window.addEventListener(what, wake, { passive: true });
document.addEventListener("visibilitychange", wake);
new ResizeObserver(wake).observe(stage.element);
wake();
// without a picture, the rest is loaded later
window.setTimeout(() => {
  void furnish();
  if (!pictured && store.hello && store.hello.kind !== "none") loadScene();
}, 3000);

// -- the configurator ----------------------------------------------------------------------------------------------

let modelling: Promise<void> | null = null; // loads the configurator

/** Update the configurator's permissions. */
function permitModels(): void {
  const hello = store.hello;
  if (hello) configurator?.permit(hello.kind !== "none", hello.write);
}

function route(): void {
  const configuring = location.hash === "#configure";
  wake();
  toggleClass(root, "hidden", configuring);
  if (configuring)
    modelling ??= import("./configurator").then(
      (m) => {
        configurator = new m.Configurator();
        route();
      },
      (error: unknown) => errors.fail("the configurator", error),
    );
  permitModels();
  (configuring && configurator ? configurator : toolbar).prefer(preferences);
  configurator?.show(configuring);
}
window.addEventListener("hashchange", route);
route();
