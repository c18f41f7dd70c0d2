// What the list of bodies says about a vehicle: battery, mission, link and alarms. A missing value is a dash whose title
// says why it is missing.

import { formatNumber, formatTime } from "./dom";
import type { Alarm, MissionState } from "./page_protocol";
import type { SceneStore } from "./scene_store";

export interface Shown {
  text: string;
  title: string;
  bad?: boolean;
}
export const SEVERITIES: Alarm["severity"][] = ["low", "medium", "high"];
const LOW_BATTERY = 0.2,
  LATE_S = 2,
  SLOW = 0.05; // m/s: without a time of arrival below this speed

const missing = (title: string): Shown => ({ text: "–", title });

/** Reason why this source has none of these values; "": it may have them. */
function absent(store: SceneStore, what: string): string {
  const kind = store.hello?.kind;
  return kind === "remote" ? `${what} unknown: a remote server does not send it to an observer` : "";
}

export function battery(store: SceneStore, row: number): Shown {
  const charge = store.fleet.charges[row];
  if (charge === undefined)
    return missing(absent(store, "Battery") || "No valid battery charge reading for this vehicle");
  return { text: `${Math.round(100 * charge)} %`, title: "Battery charge", bad: charge < LOW_BATTERY };
}

/** Time to the target at the present speed over ground, in s; null: the vehicle does not move, or has no target. */
export function timeToTarget(store: SceneStore, row: number, m: MissionState | undefined): number | null {
  const k = store.index.get(row);
  if (!m?.target || k === undefined) return null;
  const away = Math.hypot(m.target[0]! - store.ned[3 * k]!, m.target[1]! - store.ned[3 * k + 1]!),
    speed = store.speed[k]!;
  return speed > SLOW && Number.isFinite(away) ? away / speed : null;
}

export function mission(store: SceneStore, row: number): Shown {
  const m = store.fleet.missions[row];
  if (!m)
    return missing(
      absent(store, "Mission") ||
        (store.hello?.kind === "replay"
          ? "The log has no mission status for this vehicle at this time"
          : "No on-board program is reporting a mission (only programs that use MissionFollower report one)"),
    );
  const eta = m.mode === "mission" || m.mode === "goto" || m.mode === "return" ? timeToTarget(store, row, m) : null,
    point = m.count ? ` ${m.waypoint}/${m.count}` : "";
  return {
    text: `${m.mode}${point}${eta === null ? "" : ` ${formatTime(eta, 0)}`}`,
    title:
      `Mode: ${m.mode}` +
      (m.count ? `; waypoint ${m.waypoint} of ${m.count}` : "") +
      (eta === null ? "" : `; ${formatTime(eta, 0)} to its target at the current speed`),
    bad: m.mode === "aborted",
  };
}

/** Session of the pilot of a body. */
function pilot(store: SceneStore, row: number) {
  return store.weather?.clients.find((c) => c.row === row && c.role === "pilot");
}

export function link(store: SceneStore, row: number): Shown {
  const p = pilot(store, row);
  if (!p)
    return missing(
      store.hello?.kind === "replay"
        ? "Link unknown: a log does not record the network links of the programs"
        : absent(store, "Link") || "No program is driving this vehicle",
    );
  const silent = p.silent ?? 0,
    late = silent > LATE_S;
  return {
    text: late ? `silent ${silent.toFixed(0)} s` : `${formatNumber(p.rtt_ms, 1)} ms`,
    title: `Driven by ${p.address}; last datagram ${formatNumber(p.silent, 1)} s ago; round trip ${formatNumber(p.rtt_ms, 2)} ms`,
    bad: late,
  };
}

/** Who drives a body; "": none. */
export function driver(store: SceneStore, row: number): string {
  return pilot(store, row)?.address ?? "";
}

export interface Alarmed {
  severity: Alarm["severity"];
  text: string;
}

/** Highest severity and the texts of the active alarms of each body. */
export function alarmsByRow(store: SceneStore): Map<number, Alarmed> {
  const found = new Map<number, Alarmed>();
  for (const a of store.alarms) {
    if (a.until !== null || a.shelved !== null) continue;
    const was = found.get(a.row),
      text = `${a.severity} alarm, ${a.kind}: ${a.text}`;
    if (!was) found.set(a.row, { severity: a.severity, text });
    else {
      was.text += `\n${text}`;
      if (SEVERITIES.indexOf(a.severity) > SEVERITIES.indexOf(was.severity)) was.severity = a.severity;
    }
  }
  return found;
}
