// What the page does with each message of the viewer's server.

import type { AlarmAnnouncer } from "./alarm_announcer";
import type { BodyDetails } from "./body_details";
import type { BottomPanel } from "./bottom_panel";
import type { ConnectionBanner } from "./connection_banner";
import { toast } from "./dom";
import { fenceChanges } from "./fence_rules";
import type { ErrorBanner } from "./error_banner";
import type { HelloMessage, RosterMessage, SceneMessage, ServerMessage, SoundsMessage } from "./page_protocol";
import type { SceneStore } from "./scene_store";
import { SeaState } from "./sea_state";
import type { SonarWindows } from "./sonar_windows";
import { readableText } from "./readable_text";
import type { Stage } from "./stage";
import type { Toolbar } from "./toolbar";
import type { VehicleCommands } from "./vehicle_commands";

/** Messages other than those of the first view, which main.ts handles. */
type LaterMessage = Exclude<ServerMessage, HelloMessage | SceneMessage | RosterMessage>;
type Handlers = { [M in LaterMessage as M["type"]]: (message: M) => void };

export interface MessageTargets {
  store: SceneStore;
  stage: Pick<Stage, "showDetails" | "view" | "show">;
  toolbar: Pick<Toolbar, "clients">;
  bottom: Pick<BottomPanel, "signals" | "timeline" | "rewind" | "events" | "discardAfter">;
  details: Pick<BodyDetails, "fit" | "clear" | "charts">;
  sonars: Pick<SonarWindows, "setStatus">;
  announcer: Pick<AlarmAnnouncer, "take" | "forget">;
  connection: Pick<ConnectionBanner, "source">;
  errors: Pick<ErrorBanner, "there">;
  commands: Pick<VehicleCommands, "answer" | "shows">;
  /** Show new data of the selected body, which are not drawn otherwise. */
  showPanel(): void;
}

function tellSounds(p: MessageTargets, m: SoundsMessage): void {
  const events = [...m.sent, ...m.receptions].sort((a, b) => a.time - b.time),
    sounds = p.stage.view?.sounds;
  p.store.sounds(m.sent, m.receptions, m.notices, m.anew === true);
  if (m.anew) {
    if (sounds) sounds.rays = [];
    p.bottom.signals.anew(events);
    return;
  }
  sounds?.hear(p.store, m.receptions, p.stage.show.beacons);
  p.bottom.signals.add(events);
  for (const n of m.notices) if (!p.commands.shows(n)) toast(`${n.name}: ${readableText(n.text)}`);
  if (m.missed) p.bottom.signals.lose(m.missed);
}

function handlers(p: MessageTargets): Handlers {
  const s = p.store;
  return {
    details: ({ bed, models }) => {
      if (s.scene) Object.assign(s.scene, { bed, models });
      p.stage.showDetails();
    },
    sounds: (m) => tellSounds(p, m),
    tracks: (m) => {
      s.history(m.bodies, m.whole);
      p.stage.view?.history();
    },
    time_change: ({ time }) => {
      s.discardAfter(time);
      p.stage.view?.history();
      if (p.stage.view) p.stage.view.sounds.rays = [];
      p.bottom.discardAfter(time);
      p.details.charts.discardAfter(time);
      p.announcer.forget();
    },
    marks: (m) => p.bottom.events.take(m.marks),
    alarms: (m) => {
      s.alarms = m.alarms;
      p.announcer.take(m.alarms);
    },
    beliefs: (m) => s.believe(m.bodies),
    weather: (m) => {
      s.weather = m;
      p.toolbar.clients();
      if (m.replay) p.bottom.timeline.set(m.replay);
      if (m.snapshots) p.bottom.rewind.set(m.snapshots);
    },
    sea: (m) => {
      s.sea = m.components ? new SeaState(m.components) : null;
    },
    fleet: (m) => {
      s.fleet = m;
    },
    answer: (m) => p.commands.answer(m),
    cables: (m) => {
      s.cables = m.cables;
    },
    fences: (m) => {
      if (fenceChanges(s.fences, m.fences).length) s.fences = m.fences; // sent again after a reconnection
    },
    traffic: (m) => {
      if (m.row === s.chosen) s.traffic = m.traffic;
    },
    kit: (m) => {
      if (m.row !== s.chosen) return;
      s.kit = m.kit;
      p.details.fit(m.kit);
    },
    panel: (m) => {
      if (m.row !== s.chosen) return;
      s.panel = m.panel;
      if (m.panel) p.showPanel();
      else p.details.clear();
    },
    picture: (m) => p.sonars.setStatus(m),
    mosaic: (m) => {
      if (!m.layers.length && !s.mosaic.layers.size && s.mosaic.shown)
        if (m.waiting) toast("the mosaic starts with the next frame of a sonar");
        else toast("no mosaic: no side-scan sonar or multibeam echosounder is sending frames", true);
      s.mosaic.list(m.layers);
    },
    trouble: (m) => p.connection.source(m.text),
    mishaps: (m) => p.errors.there(m.parts, m.total),
    reply: (m) => toast(readableText(m.text) || (m.ok ? "done" : "refused"), !m.ok),
  };
}

/** Return the function that takes each message; `wake` is called for those that change the picture. */
export function messageHandler(targets: MessageTargets, wake: () => void): (message: LaterMessage) => void {
  const table = handlers(targets);
  return (m) => {
    // new numbers alone need no new picture
    if (m.type !== "weather" && !(m.type === "panel" && m.panel && m.panel.time === targets.store.panel?.time)) wake();
    (table[m.type] as (message: LaterMessage) => void)(m);
  };
}
