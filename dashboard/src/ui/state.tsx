// One colour and one sign for every state, wherever it is shown.
import {
  Ban, CheckCircle2, CircleDashed, CircleDot, CircleHelp, Clock, Hourglass, PauseCircle, RotateCw, SkipForward, Undo2, XCircle,
  type LucideIcon,
} from 'lucide-react'

export type Hue = 'good' | 'bad' | 'busy' | 'wait' | 'idle' | 'accent'

interface Look {
  hue: Hue
  icon: LucideIcon
  moves?: true
}

const LOOKS: Record<string, Look> = {
  completed: { hue: 'good', icon: CheckCircle2 },
  closed: { hue: 'good', icon: CheckCircle2 },
  healthy: { hue: 'good', icon: CheckCircle2 },
  ready: { hue: 'busy', icon: CircleDot },
  running: { hue: 'busy', icon: CircleDot, moves: true },
  streaming: { hue: 'busy', icon: CircleDot, moves: true },
  retrying: { hue: 'wait', icon: RotateCw },
  waiting: { hue: 'wait', icon: Hourglass },
  'half-open': { hue: 'wait', icon: Hourglass },
  half_open: { hue: 'wait', icon: Hourglass },
  paused: { hue: 'wait', icon: PauseCircle },
  cancelling: { hue: 'wait', icon: Ban, moves: true },
  compensating: { hue: 'wait', icon: Undo2, moves: true },
  compensated: { hue: 'wait', icon: Undo2 },
  failed: { hue: 'bad', icon: XCircle },
  open: { hue: 'bad', icon: XCircle },
  error: { hue: 'bad', icon: XCircle },
  unknown: { hue: 'bad', icon: CircleHelp },
  cancelled: { hue: 'idle', icon: Ban },
  skipped: { hue: 'idle', icon: SkipForward },
  queued: { hue: 'idle', icon: Clock },
  pending: { hue: 'idle', icon: CircleDashed },
  idle: { hue: 'idle', icon: CircleDashed },
  warn: { hue: 'wait', icon: CircleDot },
  info: { hue: 'busy', icon: CircleDot },
  debug: { hue: 'idle', icon: CircleDot },
}

export const lookOf = (state: string): Look => LOOKS[state] ?? { hue: 'idle', icon: CircleDashed }

export const TEXT: Record<Hue, string> = {
  good: 'text-good', bad: 'text-bad', busy: 'text-busy', wait: 'text-wait', idle: 'text-idle', accent: 'text-accent',
}
export const WASH: Record<Hue, string> = {
  good: 'bg-good-wash', bad: 'bg-bad-wash', busy: 'bg-busy-wash', wait: 'bg-wait-wash', idle: 'bg-idle-wash', accent: 'bg-accent-wash',
}
export const FILL: Record<Hue, string> = {
  good: 'bg-good', bad: 'bg-bad', busy: 'bg-busy', wait: 'bg-wait', idle: 'bg-idle', accent: 'bg-accent',
}

export function StateBadge({ state, label }: { state: string; label?: string }) {
  const look = lookOf(state)
  const Icon = look.icon
  return (
    <span className={`inline-flex items-center gap-1 rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap ${TEXT[look.hue]} ${WASH[look.hue]}`}>
      <Icon size={12} aria-hidden className={look.moves ? 'pulse' : ''} />
      {label ?? state}
    </span>
  )
}

export function Badge({ hue = 'idle', children }: { hue?: Hue; children: React.ReactNode }) {
  return <span className={`inline-flex items-center rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap ${TEXT[hue]} ${WASH[hue]}`}>{children}</span>
}
