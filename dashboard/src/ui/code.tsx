// JSON and other text as it is, readable.
import { Fragment, useMemo, useState } from 'react'
import { Copy } from './basics'

const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g
/** Beyond this colours cost more than they help. */
const COLOURED_CHARS = 60_000
const FIRST_CHARS = 20_000

export function pretty(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing')
}

export function Code({ value, label, className = '' }: { value: unknown; label: string; className?: string }) {
  const text = useMemo(() => pretty(value), [value])
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? text : text.slice(0, FIRST_CHARS)
  return (
    <div className={`group relative min-w-0 rounded-md border border-line bg-raised ${className}`}>
      <pre tabIndex={0} aria-label={label} className="max-h-96 overflow-auto p-2.5 font-mono text-xs leading-5 whitespace-pre-wrap break-words">
        {typeof value === 'string' ? shown : <Coloured text={shown} />}
      </pre>
      {shown.length < text.length && (
        <button type="button" className="w-full border-t border-line py-1 text-xs text-accent" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString('en')} characters
        </button>
      )}
      <span className="absolute top-1 right-1 rounded bg-raised opacity-0 group-focus-within:opacity-100 group-hover:opacity-100">
        <Copy text={text} label={`Copy ${label.toLowerCase()}`} />
      </span>
    </div>
  )
}

function Coloured({ text }: { text: string }) {
  const pieces = useMemo(() => (text.length > COLOURED_CHARS ? null : split(text)), [text])
  if (pieces === null) return <>{text}</>
  return (
    <>
      {pieces.map(([kind, piece], index) =>
        kind === '' ? <Fragment key={index}>{piece}</Fragment> : <span key={index} className={kind}>{piece}</span>,
      )}
    </>
  )
}

function split(text: string): [string, string][] {
  const pieces: [string, string][] = []
  let last = 0
  for (const found of text.matchAll(TOKENS)) {
    if (found.index > last) pieces.push(['', text.slice(last, found.index)])
    const [all, quoted, colon, word] = found
    if (quoted !== undefined && colon !== undefined) {
      pieces.push(['text-accent', quoted], ['', colon])
    } else {
      pieces.push([quoted !== undefined ? 'text-good' : word !== undefined ? 'text-wait' : 'text-busy', all])
    }
    last = found.index + all.length
  }
  if (last < text.length) pieces.push(['', text.slice(last)])
  return pieces
}
