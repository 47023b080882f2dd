// Packs what gets smaller by it, and says how large the first view is; too large a one fails the build.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const FIRST_VIEW_LIMIT_BYTES = 150_000
const built = new URL('../../crates/faces/dashboard/built/', import.meta.url)
const packed = new Map()

for (const entry of readdirSync(built, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.(js|css|svg)$/.test(entry.name)) continue
  const path = `${entry.parentPath}/${entry.name}`
  const bytes = readFileSync(path)
  const small = gzipSync(bytes, { level: 9 })
  packed.set(entry.name, small.length)
  if (small.length < bytes.length) writeFileSync(`${path}.gz`, small)
}

const index = readFileSync(new URL('index.html', built), 'utf8')
const first = [...index.matchAll(/(?:src|href)="\/(?:assets\/)?([^"]+\.(?:js|css))"/g)].map((found) => found[1])
const bytes = first.reduce((sum, name) => sum + (packed.get(name) ?? 0), Buffer.byteLength(index))
console.log(`first view: ${(bytes / 1000).toFixed(1)} kB of at most ${FIRST_VIEW_LIMIT_BYTES / 1000} kB (${first.join(', ')})`)
if (bytes > FIRST_VIEW_LIMIT_BYTES) process.exit(1)
