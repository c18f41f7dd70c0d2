// The panel at the bottom: the time slider of a log or of a running simulation, and lists and charts of the whole simulation.

import { AcousticRanges } from "./acoustic_ranges";
import type { AlarmAnnouncer } from "./alarm_announcer";
import { AlarmList, NoticeList } from "./alarms";
import { BookmarkList } from "./bookmark_list";
import { CommanderForms } from "./commander_forms";
import { DepthProfile } from "./depth_profile";
import { formatTime, h, toast } from "./dom";
import { Drawer, type Pane } from "./drawer";
import { EventMarks } from "./event_marks";
import type { Layout } from "./layout";
import { RewindSlider } from "./rewind_slider";
import { Propagation } from "./propagation";
import { SignalList } from "./signal_list";
import { LogCharts } from "./log_charts";
import type { HelloMessage } from "./page_protocol";
import { whyNoCommands } from "./permissions";
import type { SceneStore } from "./scene_store";
import { SpaceTime } from "./spacetime";
import type { Stage } from "./stage";
import { Timeline } from "./timeline";
import { TrafficList } from "./traffic_list";
import type { ViewerSocket } from "./websocket";

/** A pane of the drawer: a list or a chart. */
function pane(key: string, title: string, of: { element: HTMLElement; update(): void }, count?: () => number): Pane {
  return { key, title, element: of.element, update: () => of.update(), ...(count ? { count } : {}) };
}

const LOOK_BACK_S = 30;

export class BottomPanel {
  readonly element: HTMLElement;
  readonly signals: SignalList;
  readonly timeline: Timeline;
  readonly rewind: RewindSlider;
  readonly charts: LogCharts;
  readonly events: EventMarks;
  readonly propagation: Propagation;
  readonly sound: SpaceTime;
  private readonly bookmarks: BookmarkList;
  private readonly drawer: Drawer;

  constructor(
    private readonly store: SceneStore,
    link: Pick<ViewerSocket, "acknowledge" | "shelve" | "control" | "order">,
    announcer: AlarmAnnouncer,
    stage: Pick<Stage, "chart" | "points" | "showChart">,
    choose: (row: number | null) => void,
    changed: () => void,
  ) {
    this.events = new EventMarks(store);
    const seek = (time: number): void => link.control("seek", time);
    this.signals = new SignalList(store, choose);
    this.timeline = new Timeline(store, this.events, seek);
    this.rewind = new RewindSlider(store, (time) => link.control("rewind", time), changed);
    this.charts = new LogCharts(store, this.events, seek, changed);
    this.propagation = new Propagation(store, stage, changed);
    const goTo = (time: number): void => {
      if (store.hello?.kind === "replay") seek(time);
      else this.lookBack(time);
    };
    this.bookmarks = new BookmarkList(store, this.events.bookmarks, goTo, changed);
    this.sound = new SpaceTime(store, choose, goTo);
    const traffic = new TrafficList(store, choose),
      alarms = new AlarmList(store, choose, link, announcer);
    this.drawer = new Drawer(
      [
        pane("signals", "Signals", this.signals),
        pane("sound", "Sound", this.sound),
        pane("propagation", "Rays", this.propagation),
        pane("ranges", "Ranges", new AcousticRanges(store)),
        pane("profile", "Depth", new DepthProfile(store)),
        pane("traffic", "Traffic", traffic, () => traffic.count()),
        pane("charts", "Charts", this.charts),
        pane("alarms", "Alarms", alarms, () => alarms.unseen().length),
        pane("orders", "Commands", new CommanderForms(store, (verb, row, values) => link.order(verb, row, values))),
        pane("notices", "Notices", new NoticeList(store)),
        pane("bookmarks", "Bookmarks", this.bookmarks),
      ],
      changed,
    );
    this.element = h("div", { id: "bottom" }, this.timeline.element, this.rewind.element, this.drawer.element);
  }

  /** Key of the first open pane; "" if none is open. */
  get open(): string {
    return this.drawer.open;
  }

  /** Parts of a layout. */
  get layout(): Pick<Layout, "panes" | "bounds" | "height" | "charts"> {
    const { panes, bounds, share } = this.drawer;
    return { panes: [...panes], bounds: [...bounds], height: share, charts: this.charts.specs };
  }

  /** Open the tabs and charts of a layout. */
  arrange({ panes, bounds, height, charts }: Pick<Layout, "panes" | "bounds" | "height" | "charts">): void {
    this.drawer.share = height;
    this.drawer.arrange(panes, bounds);
    this.charts.specs = charts;
  }

  /** Take what this page may do. */
  permit(hello: HelloMessage): void {
    this.drawer.disable("orders", whyNoCommands(hello));
  }

  show(key: string): void {
    this.drawer.show(key);
  }

  /** Begin a bookmark at the present time. */
  bookmark(): void {
    if (!this.drawer.panes.includes("bookmarks")) this.drawer.show("bookmarks");
    this.bookmarks.begin();
  }

  /** Discard everything that is later than a time, because the simulation has returned to it. */
  discardAfter(time: number): void {
    this.signals.anew(this.store.events);
    this.events.discardAfter(time);
    this.charts.refresh();
  }

  /** Show the charts around a past time of a running simulation. */
  private lookBack(time: number): void {
    if (!this.drawer.panes.includes("charts")) this.drawer.arrange(["charts", ...this.drawer.panes]);
    this.charts.zoom({ since: time - LOOK_BACK_S, until: time + LOOK_BACK_S });
    const how = this.charts.empty ? "add a chart to see" : "the charts show"; // a running simulation goes on
    toast(`${how} the ${LOOK_BACK_S} s before and after ${formatTime(time)}`);
  }

  update(): void {
    this.drawer.update();
    if (!this.drawer.panes.includes("propagation")) this.propagation.close();
  }
}
