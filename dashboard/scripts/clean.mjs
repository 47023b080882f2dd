// Takes the last build away, so that nothing old is carried along.
import { readdirSync, rmSync } from 'node:fs'

const built = new URL('../../crates/faces/dashboard/built/', import.meta.url)
for (const name of readdirSync(built)) {
  if (!name.startsWith('.')) rmSync(new URL(name, built), { recursive: true })
}
