// Positions as text in the formats of charts and receivers, and their inverse: metres from the origin, decimal degrees,
// degrees and minutes, and UTM on the WGS 84 ellipsoid.

import { formatDegrees, formatOffset, geodetic, toLocal } from "./geodesy";

export type CoordinateFormat = "minutes" | "degrees" | "utm" | "metres";
export const COORDINATE_FORMATS: [format: CoordinateFormat, title: string][] = [
  ["minutes", "degrees, minutes"],
  ["degrees", "decimal degrees"],
  ["utm", "UTM"],
  ["metres", "metres"],
];
type Origin = [latitude: number, longitude: number];
export type Place = [north: number, east: number];

const RAD = Math.PI / 180,
  BANDS = "CDEFGHJKLMNPQRSTUVWX",
  SCALE = 0.9996,
  FALSE_EAST = 500_000,
  FALSE_NORTH = 10_000_000; // m, in the south
// Krüger's series in the third flattening n (Karney 2011, to n^4: below 0.1 mm within a zone)
const F = 1 / 298.257223563,
  N = F / (2 - F),
  ECCENTRICITY = Math.sqrt(F * (2 - F)),
  RECTIFYING = (6378137 / (1 + N)) * (1 + N ** 2 / 4 + N ** 4 / 64),
  ALPHA = [
    N / 2 - (2 / 3) * N ** 2 + (5 / 16) * N ** 3 + (41 / 180) * N ** 4,
    (13 / 48) * N ** 2 - (3 / 5) * N ** 3 + (557 / 1440) * N ** 4,
    (61 / 240) * N ** 3 - (103 / 140) * N ** 4,
    (49561 / 161280) * N ** 4,
  ],
  BETA = [
    N / 2 - (2 / 3) * N ** 2 + (37 / 96) * N ** 3 - (1 / 360) * N ** 4,
    (1 / 48) * N ** 2 + (1 / 15) * N ** 3 - (437 / 1440) * N ** 4,
    (17 / 480) * N ** 3 - (37 / 840) * N ** 4,
    (4397 / 161280) * N ** 4,
  ];

/** Zone of a position, with the exceptions of south-west Norway and Svalbard. */
function utmZone(latitude: number, longitude: number): number {
  if (latitude >= 56 && latitude < 64 && longitude >= 3 && longitude < 12) return 32;
  if (latitude >= 72 && longitude >= 0 && longitude < 42) return 31 + 2 * Math.floor((longitude + 3) / 12);
  return (Math.floor((((longitude + 180) % 360) + 360) / 6) % 60) + 1;
}

/** Format a geodetic position in UTM: zone, band, easting and northing in m. Outside 80 S to 84 N there is no UTM. */
export function formatUtm(latitude: number, longitude: number): string {
  if (latitude < -80 || latitude > 84) return "no UTM here";
  const zone = utmZone(latitude, longitude),
    s = Math.sin(latitude * RAD),
    t = Math.sinh(Math.atanh(s) - ECCENTRICITY * Math.atanh(ECCENTRICITY * s)),
    l = (longitude - (6 * zone - 183)) * RAD,
    xi = Math.atan2(t, Math.cos(l)),
    eta = Math.atanh(Math.sin(l) / Math.hypot(1, t));
  let [x, y] = [eta, xi];
  ALPHA.forEach((a, k) => {
    x += a * Math.cos(2 * (k + 1) * xi) * Math.sinh(2 * (k + 1) * eta);
    y += a * Math.sin(2 * (k + 1) * xi) * Math.cosh(2 * (k + 1) * eta);
  });
  const easting = FALSE_EAST + SCALE * RECTIFYING * x,
    northing = SCALE * RECTIFYING * y + (latitude < 0 ? FALSE_NORTH : 0);
  const band = BANDS[Math.min(Math.floor((latitude + 80) / 8), BANDS.length - 1)]!;
  return `${zone}${band} ${easting.toFixed(1)} ${northing.toFixed(1)}`;
}

/** Latitude and longitude in degrees of a UTM position. */
function fromUtm(zone: number, south: boolean, easting: number, northing: number): [number, number] {
  const eta = (easting - FALSE_EAST) / (SCALE * RECTIFYING),
    xi = (northing - (south ? FALSE_NORTH : 0)) / (SCALE * RECTIFYING);
  let [x, y] = [eta, xi];
  BETA.forEach((b, k) => {
    x -= b * Math.cos(2 * (k + 1) * xi) * Math.sinh(2 * (k + 1) * eta);
    y -= b * Math.sin(2 * (k + 1) * xi) * Math.cosh(2 * (k + 1) * eta);
  });
  const t = Math.sin(y) / Math.hypot(Math.sinh(x), Math.cos(y)),
    l = Math.atan2(Math.sinh(x), Math.cos(y));
  let s = t / Math.hypot(1, t); // sine of the latitude, by fixed-point iteration on the isometric latitude
  for (let k = 0; k < 12; k++) s = Math.tanh(Math.asinh(t) + ECCENTRICITY * Math.atanh(ECCENTRICITY * s));
  return [Math.asin(s) / RAD, 6 * zone - 183 + l / RAD];
}

/** Format a point of W. Without a geographic origin, metres are the only format. */
export function formatPosition(origin: Origin | null | undefined, [n, e]: Place, format: CoordinateFormat): string {
  if (!origin || format === "metres") return `${formatOffset(n, "NS", 1)}  ${formatOffset(e, "EW", 1)}`;
  const [lat, lon] = geodetic(origin, n, e, 0);
  if (format === "utm") return formatUtm(lat, lon);
  if (format === "degrees") return `${lat.toFixed(7)}, ${lon.toFixed(7)}`;
  return `${formatDegrees(lat, "NS")}  ${formatDegrees(lon, "EW")}`;
}

const NUMBER = String.raw`([+-]?\d+(?:\.\d+)?)`,
  METRES = new RegExp(String.raw`^${NUMBER}\s*m?\s*([NS])[\s,]+${NUMBER}\s*m?\s*([EW])$`, "i"),
  DEGREES = new RegExp(String.raw`^${NUMBER}\s*°?(?:\s*,\s*|\s+)${NUMBER}\s*°?$`),
  ANGLE = String.raw`(\d+(?:\.\d+)?)\s*°\s*(?:(\d+(?:\.\d+)?)\s*['′]\s*)?`,
  MINUTES = new RegExp(String.raw`^${ANGLE}([NS])[\s,]+${ANGLE}([EW])$`, "i"),
  UTM = new RegExp(String.raw`^(\d{1,2})\s*([C-HJ-NP-X])\s+${NUMBER}\s*m?\s*E?[\s,]+${NUMBER}\s*m?\s*N?$`, "i");

/** Point of W that a text names in any of the formats; a string: what is wrong with the text. */
export function parsePosition(text: string, origin: Origin | null | undefined): Place | string {
  const given = text.trim();
  const local = METRES.exec(given);
  if (local) {
    const side = (letter: string): number => (/[SW]/i.test(letter) ? -1 : 1);
    return [Number(local[1]) * side(local[2]!), Number(local[3]) * side(local[4]!)];
  }
  const found = parseGeodetic(given);
  if (!found)
    return `invalid position '${given}': use '20 N 15 E' (metres), '41.18, -8.7', '41°10.8′N 8°42.0′W' or '29T 525160 4558900' (UTM)`;
  const [lat, lon] = found;
  if (Math.abs(lat) > 90 || Math.abs(lon) > 360)
    return `invalid position '${given}': latitude or longitude out of range`;
  if (!origin) return "this world has no latitude and longitude: give metres, such as 20 N 15 E";
  return toLocal(origin, lat, lon);
}

function parseGeodetic(given: string): [number, number] | null {
  const plain = DEGREES.exec(given);
  if (plain) return [Number(plain[1]), Number(plain[2])];
  const m = MINUTES.exec(given);
  if (m) {
    const angle = (degrees: string, minutes: string | undefined, side: string): number =>
      (Number(degrees) + Number(minutes ?? 0) / 60) * (/[SW]/i.test(side) ? -1 : 1);
    return [angle(m[1]!, m[2], m[3]!), angle(m[4]!, m[5], m[6]!)];
  }
  const utm = UTM.exec(given);
  if (!utm || Number(utm[1]) < 1 || Number(utm[1]) > 60) return null;
  return fromUtm(Number(utm[1]), utm[2]!.toUpperCase() < "N", Number(utm[3]), Number(utm[4]));
}
