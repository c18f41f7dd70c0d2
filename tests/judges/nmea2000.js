// CAN frames in Yacht Devices' RAW form from stdin, one a line; for each message a line of JSON: what canboat makes of it, and
// what Signal K makes of that.
const { FromPgn } = require('@canboat/canboatjs')
const { toDelta } = require('@signalk/n2k-signalk')
const parser = new FromPgn({ format: 0 })
parser.on('error', (pgn, error) => console.log(JSON.stringify({ error: String(error), pgn })))
for (const line of require('fs').readFileSync(0, 'utf8').split('\r\n').filter(Boolean)) {
  const pgn = parser.parseYDGW02(line)
  if (pgn) console.log(JSON.stringify({ pgn: pgn.pgn, fields: pgn.fields, values: toDelta(pgn).updates.flatMap(u => u.values) }))
}
