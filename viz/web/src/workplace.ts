// The parts of mission control that the first view does not need: tools, details, lists, charts, windows and keys. The page
// loads them after its first picture.

import { AlarmAnnouncer } from "./alarm_announcer";
import { Arrangement } from "./arrangement";
import { BodyDetails } from "./body_details";
import { BottomPanel } from "./bottom_panel";
import { listenToChartKeys } from "./chart_keys";
import { ChartTools } from "./chart_tools";
import type { ConnectionBanner } from "./connection_banner";
import { h, toast } from "./dom";
import { Dock } from "./dock";
import type { DrawingLoop } from "./drawing_loop";
import type { ErrorBanner } from "./error_banner";
import { recolourKeyHelp } from "./keyboard";
import { LayoutMenu } from "./layouts";
import { ManualControl } from "./manual_control";
import { messageHandler } from "./message_handlers";
import { MissionEditor } from "./mission_editor";
import { OnboardWindow } from "./onboard_window";
import type { HelloMessage, RosterEntry } from "./page_protocol";
import type { SceneStore } from "./scene_store";
import { Selection } from "./selection";
import { SharedView } from "./shared_view";
import { listenToKeys } from "./shortcuts";
import type { SidePanels } from "./side_panels";
import type { SonarImage } from "./sonar_image";
import { SonarWindows } from "./sonar_windows";
import type { Stage } from "./stage";
import type { Theme } from "./theme";
import type { Toolbar } from "./toolbar";
import { ViewRecorder } from "./url_state";
import { VehicleCommands } from "./vehicle_commands";
import type { FleetList } from "./vehicle_list";
import type { ViewerSocket } from "./websocket";

/** Parts of the first view. */
export interface FirstView {
  root: HTMLElement;
  store: SceneStore;
  errors: ErrorBanner;
  loop: DrawingLoop;
  stage: Stage;
  toolbar: Toolbar;
  fleet: FleetList;
  theme: Theme;
  connection: ConnectionBanner;
  panels: SidePanels;
  link: ViewerSocket;
  /** Places of the bottom panel and of the details. */
  bottom: HTMLElement;
  right: HTMLElement;
}
export type Workplace = ReturnType<typeof furnish>;

/** Build the parts and add them to the page. */
export function furnish(first: FirstView) {
  const { root, store, errors, loop, stage, toolbar, fleet, theme, connection, panels, link } = first;
  const wake = (): void => loop.wake(),
    choose = (row: number | null): void => selection.choose(row),
    control = (verb: string, value?: number): void => link.control(verb, value);

  const onboard = new OnboardWindow(stage.element, (canvases) => (stage.onboard = canvases)),
    sonars = new SonarWindows(stage, new Dock(stage.element), wake);
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
  const mission = new MissionEditor(
    store,
    stage.chart,
    stage.element,
    () => stage.showChart(),
    {
      order: (verb, row, values) => link.order(verb, row, values),
      fences: (changes) => link.fences(changes),
    },
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
  const helm = new ManualControl(
    store,
    stage.element,
    (body, axes, mapping) => link.drive(body, axes, mapping),
    choose,
  );
  const announcer = new AlarmAnnouncer(),
    bottom = new BottomPanel(store, link, announcer, stage, choose, wake),
    arrangement = new Arrangement({ stage, bottom, panels }),
    layouts = new LayoutMenu(arrangement),
    shared = new SharedView(store, {
      stage,
      arrangement,
      selection,
      bookmarks: bottom.events.bookmarks,
      propagation: bottom.propagation,
      control,
    });
  const take = messageHandler(
    {
      store,
      stage,
      toolbar,
      bottom,
      details,
      sonars,
      announcer,
      connection,
      errors,
      commands,
      showPanel: () => {
        if (!loop.turning) showPanel();
      },
    },
    wake,
  );

  /** Begin a session with the viewer's server. */
  function greet(hello: HelloMessage): void {
    store.mosaic.shown = false; // requested again
    store.mosaic.list([]);
    mission.permit(hello);
    helm.permit(hello);
    bottom.permit(hello);
    if (store.chosen !== null) link.watch(store.chosen);
    sonars.connect(link);
    shared.restore();
  }

  /** Report bodies that joined or left. */
  function roster(bodies: RosterEntry[], joined: string[], left: string[]): void {
    const list = (names: string[]): string => (names.length > 3 ? `${names.length} bodies` : names.join(", "));
    if (store.hello?.kind !== "replay") {
      bottom.events.roster(joined, left);
      if (joined.length) toast(`${list(joined)} joined`);
      else if (left.length) toast(`${list(left)} left`);
    }
    selection.roster(bodies);
    shared.restore();
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

  /** Draw what accompanies a picture. */
  function drawn(): void {
    recorder.drawn();
    errors.part("the sonar windows", () => sonars.draw());
    showPanel();
  }

  function tables(): void {
    errors.part("the charts", () => details.draw());
    errors.part("the bottom panel", () => bottom.update());
    errors.part("the mission editor", () => mission.update());
    errors.part("the commands", () => commands.update());
  }

  const linkTitle = "Put a link to the current view in the address bar, and copy the link";
  stage.addTools(
    chartTools.menu.element,
    mission.button,
    helm.button,
    layouts.menu.element,
    ...recorder.buttons,
    h("button", { id: "link", title: linkTitle, onclick: () => shared.share() }, "link"),
  );
  stage.element.append(commands.overlay);
  first.bottom.replaceWith(bottom.element);
  first.right.append(details.element);
  root.append(announcer.element);
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
  return {
    choose,
    openOnboard,
    greet,
    roster,
    restore: () => shared.restore(),
    take,
    picture: (picture: SonarImage) => sonars.take(picture),
    isBusy: () => recorder.rolling,
    requestMosaics,
    drawn,
    tables,
    numbers: () => (store.hello?.kind === "replay" ? bottom.timeline : bottom.rewind).update(),
    recolour: () => {
      details.recolour();
      bottom.charts.recolour();
      recolourKeyHelp();
    },
    lose: (lost: boolean) => {
      details.lose(lost);
      selection.refresh();
    },
  };
}
