// Sentences from stdin, one a line; for each a line of JSON: what Signal K's parser makes of it.
const Parser = require('@signalk/nmea0183-signalk')
const parser = new (Parser.default || Parser)()
for (const line of require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  try {
    const delta = parser.parse(line)
    console.log(JSON.stringify(delta ? delta.updates.flatMap(u => u.values) : []))
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }))
  }
}
