// Tabs that the arrow keys move through.
import type { KeyboardEvent, ReactNode } from 'react'

export interface Tab {
  id: string
  label: string
  count?: number | undefined
}

export function Tabs({ tabs, at, go, label, children }: {
  tabs: Tab[]
  at: string
  go: (id: string) => void
  label: string
  children: ReactNode
}) {
  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    const index = tabs.findIndex((tab) => tab.id === at)
    const next = tabs[(index + step + tabs.length) % tabs.length]
    if (!next) return
    event.preventDefault()
    go(next.id)
    document.getElementById(`tab-${next.id}`)?.focus()
  }
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col">
      <div role="tablist" aria-label={label} onKeyDown={move} className="mb-3 flex gap-1 overflow-x-auto border-b border-line">
        {tabs.map((tab) => (
          <button
            key={tab.id}
            id={`tab-${tab.id}`}
            type="button"
            role="tab"
            aria-selected={tab.id === at}
            aria-controls={`panel-${tab.id}`}
            tabIndex={tab.id === at ? 0 : -1}
            onClick={() => go(tab.id)}
            className={`-mb-px flex items-center gap-1.5 border-b-2 px-2.5 py-1.5 whitespace-nowrap ${
              tab.id === at ? 'border-accent font-medium text-ink' : 'border-transparent text-soft hover:text-ink'
            }`}
          >
            {tab.label}
            {tab.count !== undefined && <span className="figures text-xs text-faint">{tab.count.toLocaleString('en')}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`panel-${at}`} aria-labelledby={`tab-${at}`} className="flex min-h-0 min-w-0 flex-1 flex-col">
        {children}
      </div>
    </div>
  )
}
