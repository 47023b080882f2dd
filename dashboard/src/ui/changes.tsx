// What changed between two texts, to be looked at.
import type { Line } from './diff'

const LOOKS = { same: '', added: 'bg-good-wash text-good', removed: 'bg-bad-wash text-bad' }
const SIGNS = { same: ' ', added: '+', removed: '−' }

export function Changes({ lines }: { lines: Line[] }) {
  return (
    <pre tabIndex={0} aria-label="What changed" className="overflow-auto rounded-md border border-line bg-raised py-2 font-mono text-xs leading-5 whitespace-pre-wrap">
      {lines.map((line, number) => (
        <div key={number} data-kind={line.kind} className={`px-3 break-words ${LOOKS[line.kind]}`}>
          <span aria-hidden className="mr-2 select-none">{SIGNS[line.kind]}</span>{line.text}
        </div>
      ))}
    </pre>
  )
}
