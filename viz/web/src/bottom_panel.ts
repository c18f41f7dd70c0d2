// The panel at the bottom: the time slider of a log, and lists and charts of the whole simulation.

import { AcousticRanges } from "./acoustic_ranges";
import type { AlarmAnnouncer } from "./alarm_announcer";
import { AlarmList, NoticeList } from "./alarms";
import { CommanderForms } from "./commander_forms";
import { DepthProfile } from "./depth_profile";
import { h } from "./dom";
import { Drawer, type Pane } from "./drawer";
import { SignalList } from "./signal_list";
import { LogCharts } from "./log_charts";
import type { HelloMessage } from "./page_protocol";
import { whyNoCommands } from "./permissions";
import type { SceneStore } from "./scene_store";
import { SpaceTime } from "./spacetime";
import { Timeline } from "./timeline";
import { TrafficList } from "./traffic_list";
import type { ViewerSocket } from "./websocket";

/** A pane of the drawer: a list or a chart. */
function pane(key: string, title: string, of: { element: HTMLElement; update(): void }, count?: () => number): Pane {
  return { key, title, element: of.element, update: () => of.update(), ...(count ? { count } : {}) };
}

export class BottomPanel {
  readonly element: HTMLElement;
  readonly signals: SignalList;
  readonly timeline: Timeline;
  readonly charts: LogCharts;
  private readonly drawer: Drawer;

  constructor(
    store: SceneStore,
    link: Pick<ViewerSocket, "acknowledge" | "shelve" | "control" | "order">,
    announcer: AlarmAnnouncer,
    choose: (row: number | null) => void,
    changed: () => void,
  ) {
    const seek = (time: number): void => link.control("seek", time);
    this.signals = new SignalList(store, choose);
    this.timeline = new Timeline(store, seek);
    this.charts = new LogCharts(store, seek, changed);
    const traffic = new TrafficList(store, choose),
      alarms = new AlarmList(store, choose, link, announcer);
    this.drawer = new Drawer(
      [
        pane("signals", "Signals", this.signals),
        pane("sound", "Sound", new SpaceTime(store, choose)),
        pane("ranges", "Ranges", new AcousticRanges(store)),
        pane("profile", "Depth", new DepthProfile(store)),
        pane("traffic", "Traffic", traffic, () => traffic.count()),
        pane("charts", "Charts", this.charts),
        pane("alarms", "Alarms", alarms, () => alarms.unseen().length),
        pane("orders", "Commands", new CommanderForms(store, (verb, row, values) => link.order(verb, row, values))),
        pane("notices", "Notices", new NoticeList(store)),
      ],
      changed,
    );
    this.element = h("div", { id: "bottom" }, this.timeline.element, this.drawer.element);
  }

  /** Key of the open pane; "" if none is open. */
  get open(): string {
    return this.drawer.open;
  }

  /** Take what this page may do. */
  permit(hello: HelloMessage): void {
    this.drawer.disable("orders", whyNoCommands(hello));
  }

  show(key: string): void {
    this.drawer.show(key);
  }

  update(): void {
    this.drawer.update();
  }
}
