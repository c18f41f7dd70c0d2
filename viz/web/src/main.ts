// Mission control page: builds its parts and connects them.

import { AlarmAnnouncer } from "./alarm_announcer";
import { Arrangement } from "./arrangement";
import { BodyDetails } from "./body_details";
import { BottomPanel } from "./bottom_panel";
import { listenToChartKeys } from "./chart_keys";
import { ChartTools } from "./chart_tools";
import type { Configurator } from "./configurator";
import { ConnectionBanner } from "./connection_banner";
import { h, toggleClass } from "./dom";
import { Dock } from "./dock";
import { DrawingLoop } from "./drawing_loop";
import { ErrorBanner } from "./error_banner";
import { recolourKeyHelp } from "./keyboard";
import { LayoutMenu } from "./layouts";
import { ManualControl } from "./manual_control";
import { messageHandler } from "./message_handlers";
import { MissionEditor } from "./mission_editor";
import { OnboardWindow } from "./onboard_window";
import type { HelloMessage } from "./page_protocol";
import { SceneStore } from "./scene_store";
import { Selection } from "./selection";
import { SharedView } from "./shared_view";
import { listenToKeys } from "./shortcuts";
import { SidePanels } from "./side_panels";
import { SonarWindows } from "./sonar_windows";
import { Stage } from "./stage";
import { TextSize } from "./text_size";
import { Theme } from "./theme";
import { Toolbar } from "./toolbar";
import { ViewRecorder } from "./url_state";
import { VehicleCommands } from "./vehicle_commands";
import { FleetList } from "./vehicle_list";
import { ViewerSocket, type Frame } from "./websocket";

// events after which the picture may change
const WAKING = "resize keydown keyup pointerdown pointermove pointerup wheel hashchange focus input change".split(" ");

// -- parts of the page ---------------------------------------------------------------------------------------------

const root = h("div", { id: "app" }),
  store = new SceneStore(),
  errors = new ErrorBanner();
const loop = new DrawingLoop({
  busy: () => stage.busy() || recorder.rolling || !store.settled(),
  picture: () => errors.part("the page", draw),
  tables: () => errors.part("the page", tables),
  rest: () => {
    errors.part("the 3D view", () => stage.rest());
    tables();
    toolbar.rest();
  },
});
const wake = (): void => loop.wake(),
  choose = (row: number | null): void => selection.choose(row),
  control = (verb: string, value?: number): void => link.control(verb, value);
let configurator: Configurator | null = null;
const theme = new Theme((dark) => {
  wake();
  stage.theme(dark);
  details.recolour();
  bottom.charts.recolour();
  configurator?.recolour();
  recolourKeyHelp();
});
const preferences = h(
  "div",
  { class: "group" },
  new TextSize(wake).element,
  h("button", { title: "Switch between light and dark (Shift+L)", onclick: () => theme.toggle() }, "◐"),
);
const stage = new Stage(store, choose, openOnboard, wake),
  onboard = new OnboardWindow(stage.element, (canvases) => (stage.onboard = canvases)),
  sonars = new SonarWindows(stage, new Dock(stage.element), wake),
  toolbar = new Toolbar(store, control, preferences),
  fleet = new FleetList(store, choose);
const commands = new VehicleCommands(
  store,
  stage.chart,
  () => stage.setMode("chart"),
  (command) => link.command(command),
);
const details = new BodyDetails(store, {
  commands: commands.element,
  onboard: openOnboard,
  follow: () => stage.setMode("follow"),
  goTo: (row) => stage.goTo(row),
  sonar: (row, name) =>
    void sonars.toggle(row, store.name(row), name).catch((error: unknown) => errors.fail("the sonar windows", error)),
  seek: (time) => control("seek", time),
  changed: wake,
  fail: (row) =>
    store.hello?.control && store.hello.kind === "live"
      ? (part, kind, amount, field) => link.fault(row, part, kind, amount, field)
      : null,
});
const selection = new Selection(
  store,
  details,
  (row) => {
    link.watch(row);
    stage.menu.close();
  },
  wake,
);
const connection = new ConnectionBanner((lost) => {
  store.lost = lost;
  toolbar.clients();
  toggleClass(root, "lost", lost !== "");
  details.lose(lost !== "");
  selection.refresh();
  wake();
});
const mission = new MissionEditor(
  store,
  stage.chart,
  stage.element,
  () => stage.showChart(),
  (verb, row, values) => link.order(verb, row, values),
  choose,
);
const chartTools = new ChartTools(store, stage.chart, () => stage.showChart(), wake);
listenToChartKeys(stage.chart);
const recorder = new ViewRecorder(
  stage.element,
  () => stage.canvases,
  () => stage.drawStill(),
  () => store.hello?.name || "wavesim",
);
const helm = new ManualControl(store, stage.element, (body, axes) => link.drive(body, axes), choose);
const link = new ViewerSocket(
  takeFrame,
  (message) => take(message),
  (on) => connection.connection(on),
  (picture) => {
    sonars.take(picture);
    wake();
  },
  (tile) => {
    store.mosaic.take(tile);
    wake();
  },
  (part, error) => errors.fail(part, error),
);
const announcer = new AlarmAnnouncer(),
  bottom = new BottomPanel(store, link, announcer, choose, wake),
  panels = new SidePanels(root),
  arrangement = new Arrangement({ stage, bottom, panels }),
  layouts = new LayoutMenu(arrangement),
  shared = new SharedView(store, { stage, arrangement, selection, bookmarks: bottom.events.bookmarks, control });
const take = messageHandler(
  {
    store,
    stage,
    toolbar,
    bottom,
    details,
    selection,
    sonars,
    shared,
    announcer,
    connection,
    errors,
    commands,
    dark: () => theme.dark,
    greet,
    showPanel: () => {
      if (!loop.turning) showPanel();
    },
  },
  wake,
);

let pictured = false, // bodies have been drawn
  detailed = false; // the details of the scene have been requested

// -- what they do together -----------------------------------------------------------------------------------------

/** Begin a session with the viewer's server. */
function greet(hello: HelloMessage): void {
  const { enc, tiles } = stage.chart;
  tiles.info = hello.tiles;
  if (hello.chart && !enc.isLoaded)
    void enc.load().then(wake, (error: unknown) => errors.fail("the electronic chart", error));
  store.mosaic.shown = false; // requested again
  store.mosaic.list([]);
  toolbar.permit(hello);
  mission.permit(hello);
  helm.permit(hello);
  bottom.permit(hello);
  permitModels();
  document.title = hello.name ? `${hello.name} – WaVeSim` : "WaVeSim";
  if (hello.kind === "none") location.hash = "#configure";
  if (store.chosen !== null) link.watch(store.chosen);
  sonars.connect(link);
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

/** Request mosaics from the server while they are shown. */
function requestMosaics(): void {
  if (stage.show.mosaic === store.mosaic.shown) return;
  store.mosaic.shown = stage.show.mosaic;
  link.mosaic(store.mosaic.shown);
}

function openOnboard(row: number): void {
  choose(row);
  onboard.show(row, store.name(row));
}

function showPanel(): void {
  errors.part("the details of the selected body", () => selection.show());
}

function draw(): void {
  errors.part("the frame", () => store.now());
  requestMosaics();
  stage.draw(errors);
  if (store.rows.length && !pictured) {
    pictured = true;
    performance.mark("first picture");
    loadScene();
  }
  if (store.last && !detailed) {
    detailed = true;
    link.details();
  }
  recorder.drawn();
  errors.part("the sonar windows", () => sonars.draw());
  showPanel();
}

/** Load what the first picture does not need. */
function loadScene(): void {
  void stage.load().then(wake, (error: unknown) => errors.fail("the 3D view", error));
}

function numbers(): void {
  toolbar.update(loop.rate);
  if (store.hello?.kind === "replay") bottom.timeline.update();
}

function tables(): void {
  errors.update();
  errors.part("the toolbar", numbers);
  errors.part("the fleet list", () => fleet.update());
  errors.part("the charts", () => details.draw());
  errors.part("the bottom panel", () => bottom.update());
  errors.part("the mission editor", () => mission.update());
  errors.part("the commands", () => commands.update());
  stage.updateButtons();
}

// -- the page ------------------------------------------------------------------------------------------------------

const linkTitle = "Put a link to the current view into the address bar and copy it";
stage.assemble(
  [
    chartTools.menu.element,
    mission.button,
    helm.button,
    layouts.menu.element,
    ...recorder.buttons,
    h("button", { id: "link", title: linkTitle, onclick: () => shared.share() }, "link"),
  ],
  h("div", { class: "banners" }, connection.element, connection.warning, errors.element),
);
stage.element.append(commands.overlay);
root.append(
  toolbar.element,
  h("div", { id: "left" }, fleet.element),
  stage.element,
  bottom.element,
  h("div", { id: "right" }, details.element),
  announcer.element,
);
document.body.append(root);
stage.theme(theme.dark);
listenToKeys({
  toolbar,
  stage,
  selection,
  mission,
  helm,
  panels,
  bottom,
  theme,
  pointer: stage.chart.pointer,
  toggleOnboard: () => {
    if (onboard.open) onboard.close();
    else if (store.chosen !== null) openOnboard(store.chosen);
  },
});
for (const what of WAKING) window.addEventListener(what, wake, { passive: true });
document.addEventListener("visibilitychange", wake);
new ResizeObserver(wake).observe(stage.element);
wake();
// without a picture, the 3D view is loaded later
window.setTimeout(() => {
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

// for tests and for the console of the browser
(window as unknown as Record<string, unknown>)["wavesim"] = {
  store,
  get view() {
    return stage.view;
  },
  chart: stage.chart,
  link,
  sonars,
  app: { root, loop, selection, bottom, details, fleet, helm, arrangement, openOnboard },
};
