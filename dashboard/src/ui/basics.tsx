// The small parts that every page is made of.
import { Check, Copy as CopyIcon, type LucideIcon } from 'lucide-react'
import { useEffect, useState, type ButtonHTMLAttributes, type ReactNode } from 'react'

type Tone = 'plain' | 'accent' | 'danger' | 'quiet'

const TONES: Record<Tone, string> = {
  plain: 'border-line bg-panel text-ink hover:bg-raised',
  accent: 'border-transparent bg-accent text-accent-ink hover:opacity-90',
  danger: 'border-line bg-panel text-bad hover:bg-bad-wash',
  quiet: 'border-transparent text-soft hover:bg-raised hover:text-ink',
}

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  tone?: Tone
  icon?: LucideIcon
  busy?: boolean
}

export function Button({ tone = 'plain', icon: Icon, busy = false, children, className = '', disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      className={`inline-flex min-h-[30px] items-center justify-center gap-1.5 rounded-md border px-2.5 font-medium whitespace-nowrap transition-colors disabled:opacity-50 ${TONES[tone]} ${className}`}
      {...rest}
    >
      {Icon && <Icon size={15} aria-hidden className={busy ? 'pulse' : ''} />}
      {children}
    </button>
  )
}

export function Panel({ title, actions, children, className = '', flush = false }: {
  title?: ReactNode
  actions?: ReactNode
  children: ReactNode
  className?: string
  flush?: boolean
}) {
  return (
    <section className={`flex min-w-0 flex-col rounded-lg border border-line bg-panel ${className}`}>
      {(title !== undefined || actions !== undefined) && (
        <header className="flex min-h-11 flex-wrap items-center justify-between gap-2 border-b border-line px-3.5 py-1.5">
          <h2 className="min-w-0 flex-[1_1_6rem] text-[13px] font-semibold">{title}</h2>
          {actions !== undefined && <div className="flex flex-wrap items-center gap-1.5">{actions}</div>}
        </header>
      )}
      <div className={`min-h-0 min-w-0 flex-1 ${flush ? '' : 'p-3.5'}`}>{children}</div>
    </section>
  )
}

export function Empty({ icon: Icon, title, children, action }: {
  icon: LucideIcon
  title: string
  children?: ReactNode
  action?: ReactNode
}) {
  return (
    <div className="flex flex-col items-center gap-2 px-4 py-12 text-center">
      <span className="rounded-full bg-idle-wash p-3 text-idle"><Icon size={22} aria-hidden /></span>
      <p className="text-[15px] font-semibold">{title}</p>
      {children !== undefined && <div className="max-w-md text-soft">{children}</div>}
      {action !== undefined && <div className="mt-2">{action}</div>}
    </div>
  )
}

/** What the page says while it waits for its first answer. */
export function Waiting({ what = 'Loading' }: { what?: string }) {
  return <p role="status" className="pulse px-3.5 py-8 text-center text-faint">{what} …</p>
}

export function Trouble({ error, again }: { error: unknown; again?: () => void }) {
  const failure = error as { message?: string; hint?: string; code?: string; correlationId?: string }
  return (
    <div role="alert" className="m-3.5 rounded-md bg-bad-wash px-3.5 py-2.5 text-bad">
      <p className="font-medium">{failure.message ?? String(error)}</p>
      {failure.hint && <p>{failure.hint}</p>}
      <p className="mt-1 flex flex-wrap items-center gap-3 text-xs">
        {failure.code && <code>{failure.code}</code>}
        {failure.correlationId && <code>{failure.correlationId}</code>}
        {again && <button type="button" onClick={again} className="underline">Try again</button>}
      </p>
    </div>
  )
}

export function Field({ label, hint, error, children }: { label: string; hint?: ReactNode; error?: string | undefined; children: ReactNode }) {
  return (
    <label className="flex flex-col gap-1">
      <span className="text-xs font-medium text-soft">{label}</span>
      {children}
      {error ? <span className="text-xs text-bad">{error}</span> : hint && <span className="text-xs text-faint">{hint}</span>}
    </label>
  )
}

export function Figure({ label, value, tone = '', hint }: { label: string; value: ReactNode; tone?: string; hint?: ReactNode }) {
  return (
    <div className="flex min-w-0 flex-col gap-0.5">
      <span className="truncate text-xs text-soft">{label}</span>
      <span className={`figures truncate text-xl font-semibold tracking-tight ${tone}`}>{value}</span>
      {hint !== undefined && <span className="truncate text-xs text-faint">{hint}</span>}
    </div>
  )
}

/** Names and values, one below the other. */
export function Facts({ of }: { of: [string, ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[max-content_1fr] gap-x-4 gap-y-1.5">
      {of.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-soft">{name}</dt>
          <dd className="figures min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  )
}

export function Copy({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false)
  useEffect(() => {
    if (!done) return
    const timer = setTimeout(() => setDone(false), 1_500)
    return () => clearTimeout(timer)
  }, [done])
  const Icon = done ? Check : CopyIcon
  return (
    <button
      type="button"
      aria-label={done ? 'Copied' : label}
      title={label}
      className="inline-flex size-6 items-center justify-center rounded text-faint hover:bg-raised hover:text-ink"
      onClick={() => void navigator.clipboard?.writeText(text).then(() => setDone(true))}
    >
      <Icon size={13} aria-hidden />
    </button>
  )
}

export function PageHead({ title, about, children }: { title: ReactNode; about?: ReactNode; children?: ReactNode }) {
  return (
    <header className="mb-3.5 flex flex-wrap items-end justify-between gap-x-4 gap-y-2">
      <div className="min-w-0">
        <h1 className="text-lg leading-7">{title}</h1>
        {about !== undefined && <div className="text-soft">{about}</div>}
      </div>
      {children !== undefined && <div className="flex flex-wrap items-center gap-1.5">{children}</div>}
    </header>
  )
}
