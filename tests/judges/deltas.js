// Signal K deltas from stdin, one a line; for each a line of JSON: what is wrong with it by Signal K's schema.
const schema = require('@signalk/signalk-schema')
for (const line of require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const result = schema.validateDelta(JSON.parse(line))
  console.log(JSON.stringify(result.errors.map(String)))
}
