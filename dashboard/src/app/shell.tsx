// What is around every page: where to go, and how it stands with the server.
import { Keyboard, WifiOff, Zap } from 'lucide-react'
import { Suspense, useEffect, useState, type ReactNode } from 'react'
import { giveBearer, useBearer } from '../api/bearer'
import { tryNow, useConnection } from '../live/feed'
import { Button, Empty, Field, Waiting } from '../ui/basics'
import { Dialog } from '../ui/dialog'
import { useClock } from '../ui/time'
import { Toasts } from '../ui/toast'
import { useWide } from '../ui/wide'
import { Caught } from './caught'
import { Keys } from './keys'
import { PAGES, pageAt } from './pages'
import { Link, parts, usePlace } from './router'
import { ThemeChoice } from './theme-choice'
import { queries } from './fresh'

export function Shell() {
  const path = usePlace((place) => place.path)
  const page = pageAt(path)
  const isWide = useWide()
  useEffect(() => {
    document.title = page ? `${page.name} · orchestr8` : 'orchestr8'
  }, [page])
  return (
    <div className="flex h-full flex-col md:flex-row">
      <a href="#main" className="absolute -top-10 left-2 z-50 rounded bg-accent px-3 py-1.5 text-accent-ink focus:top-2">Skip to the page</a>
      {!isWide && <Top />}
      <Side at={page?.path} isWide={isWide} />
      <div className="flex min-h-0 min-w-0 flex-1 flex-col">
        <Away />
        <main id="main" tabIndex={-1} className="flex min-h-0 min-w-0 flex-1 flex-col overflow-y-auto p-3 outline-none md:p-5">
          <Caught key={page?.path ?? path}>
            <Suspense fallback={<Waiting />}>
              {page ? <page.Shown parts={parts(path).slice(1)} /> : <Nowhere />}
            </Suspense>
          </Caught>
        </main>
      </div>
      <Keys />
      <AskForToken />
      <Toasts />
    </div>
  )
}

/** What stands beside the pages where there is room, and above them on a phone. */
const Top = () => (
  <header className="flex shrink-0 items-center gap-3 border-b border-line bg-panel py-1 pr-2 pl-3">
    <Link to="/" className="flex min-h-9 items-center gap-2 text-[15px] font-semibold tracking-tight"><Mark /> orchestr8</Link>
    <div className="ml-auto"><Standing /></div>
    <ThemeChoice isRoomy />
  </header>
)

function Side({ at, isWide }: { at: string | undefined; isWide: boolean }) {
  return (
    <div className="order-last flex shrink-0 border-t border-line bg-panel md:order-first md:w-48 md:flex-col md:border-t-0 md:border-r">
      <Link to="/" className="hidden items-center gap-2 px-4 pt-4 pb-3 text-[15px] font-semibold tracking-tight md:flex">
        <Mark /> orchestr8
      </Link>
      <nav aria-label="Pages" className="flex flex-1 overflow-x-auto md:flex-col md:gap-0.5 md:px-2">
        {PAGES.map(({ name, path, icon: Icon }) => (
          <Link
            key={path}
            to={path}
            aria-current={path === at ? 'page' : undefined}
            className={`flex min-h-12 flex-1 flex-col items-center justify-center gap-0.5 rounded-md px-1 py-1 text-[11px] md:min-h-0 md:justify-start md:px-2 md:flex-none md:flex-row md:gap-2.5 md:py-1.5 md:text-[13px] ${
              path === at ? 'font-medium text-accent md:bg-accent-wash' : 'text-soft hover:bg-raised hover:text-ink'
            }`}
          >
            <Icon size={16} aria-hidden />
            {/* On a phone all of them fit side by side; the sign says the rest. */}
            <span className={path === at ? '' : 'max-md:sr-only'}>{name}</span>
          </Link>
        ))}
      </nav>
      {isWide && (
        <div className="flex flex-col gap-2 p-3">
          <Standing />
          <div className="flex items-center justify-between">
            <ThemeChoice />
            <ShowKeys />
          </div>
        </div>
      )}
    </div>
  )
}

const Mark = () => (
  <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" className="fill-accent" />
    <g fill="none" strokeWidth="2.8" className="stroke-accent-ink"><circle cx="16" cy="11" r="4.6" /><circle cx="16" cy="21" r="5.4" /></g>
  </svg>
)

function Standing() {
  const { phase, via, eventsPerSecond } = useConnection()
  const [dot, words] =
    phase === 'live' ? ['bg-good', via === 'websocket' ? 'Live' : 'Live, over events'] : phase === 'connecting' ? ['bg-wait pulse', 'Connecting'] : ['bg-bad', 'Away']
  return (
    <p role="status" data-phase={phase} className="flex items-center gap-2 px-1 text-xs text-soft">
      <span className={`size-2 rounded-full ${dot}`} aria-hidden />
      {words}
      {eventsPerSecond > 0 && <span className="figures ml-auto flex items-center gap-0.5 text-faint"><Zap size={11} aria-hidden />{eventsPerSecond}/s</span>}
    </p>
  )
}

const ShowKeys = () => (
  <button
    type="button"
    aria-label="Keyboard shortcuts"
    title="Keyboard shortcuts (?)"
    onClick={() => dispatchEvent(new KeyboardEvent('keydown', { key: '?' }))}
    className="rounded p-1.5 text-faint hover:text-ink"
  >
    <Keyboard size={15} aria-hidden />
  </button>
)

function Away() {
  const { phase, retryAt, failures } = useConnection()
  const now = useClock()
  if (phase === 'live' || failures === 0) return null
  const seconds = retryAt === null ? 0 : Math.max(0, Math.ceil((retryAt - now) / 1_000))
  return (
    <Banner>
      <WifiOff size={16} aria-hidden />
      <p className="min-w-0 flex-1">
        <strong className="font-semibold">The server is away.</strong> What you see is what it last said.{' '}
        {phase === 'connecting' ? 'Trying …' : `Trying again in ${seconds} s.`}
      </p>
      <Button onClick={() => tryNow()}>Try now</Button>
    </Banner>
  )
}

const Banner = ({ children }: { children: ReactNode }) => (
  <div role="alert" className="flex flex-wrap items-center gap-3 border-b border-line bg-wait-wash px-4 py-1.5 text-wait">{children}</div>
)

const Nowhere = () => (
  <Empty icon={WifiOff} title="There is no such page" action={<Link to="/" className="text-accent underline">To the overview</Link>} />
)

function AskForToken() {
  const isRefused = useBearer((known) => known.isRefused)
  const [token, setToken] = useState('')
  if (!isRefused) return null
  const give = () => {
    giveBearer(token.trim())
    setToken('')
    void queries.invalidateQueries()
    tryNow()
  }
  return (
    <Dialog title="This server asks for a token" close={() => useBearer.setState({ isRefused: false })}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          give()
        }}
      >
        <Field label="Token" hint="It is kept in this tab and forgotten when you close it.">
          <input className="field" type="password" autoComplete="off" value={token} onChange={(event) => setToken(event.target.value)} />
        </Field>
        <Button type="submit" tone="accent" disabled={token.trim() === ''}>Continue</Button>
      </form>
    </Dialog>
  )
}
