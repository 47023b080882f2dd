// What happened, entry by entry, with filters, and followed if one wants.
import { ScrollText } from 'lucide-react'
import { useMemo, useState } from 'react'
import type { JournalEntry } from '../../api/client'
import { useQueryValue } from '../../app/router'
import { Empty, Trouble, Waiting } from '../../ui/basics'
import { Code } from '../../ui/code'
import { Dialog } from '../../ui/dialog'
import { lookOf, TEXT } from '../../ui/state'
import { Table, type Column } from '../../ui/table'
import { span } from '../../ui/time'
import type { Journal } from './use-journal'

const LEVELS = ['debug', 'info', 'warn', 'error']

export function JournalView({ journal, moment, goTo }: { journal: Journal; moment: number | null; goTo: (sequence: number) => void }) {
  const [level, setLevel] = useQueryValue('level')
  const [type, setType] = useQueryValue('type')
  const [step, setStep] = useQueryValue('of')
  const [follow, setFollow] = useState(false)
  const [open, setOpen] = useState<JournalEntry | null>(null)
  const types = useMemo(() => [...new Set(journal.entries.map((entry) => entry.type))].sort(), [journal.entries])
  const steps = useMemo(() => [...new Set(journal.entries.flatMap((entry) => entry.stepId ?? []))].sort(), [journal.entries])
  const shown = useMemo(() => {
    const least = LEVELS.indexOf(level)
    return journal.entries.filter(
      (entry) =>
        LEVELS.indexOf(entry.level) >= least && (type === '' || entry.type === type) && (step === '' || entry.stepId === step),
    )
  }, [journal.entries, level, type, step])
  if (journal.error) return <Trouble error={journal.error} />
  if (journal.entries.length === 0) return journal.isRead ? <Empty icon={ScrollText} title="The journal is empty" /> : <Waiting what="Reading the journal" />
  return (
    <div className="flex min-h-96 flex-1 flex-col overflow-hidden rounded-lg border border-line bg-panel">
      <div className="flex flex-wrap items-center gap-2 border-b border-line p-2">
        <Filter label="Level" all="Every level" value={level} set={setLevel} options={LEVELS} />
        <Filter label="Type" all="Every type" value={type} set={setType} options={types} />
        <Filter label="Step" all="Every step" value={step} set={setStep} options={steps} />
        <label className="flex items-center gap-1.5 px-1 text-soft">
          <input type="checkbox" checked={follow} onChange={(event) => setFollow(event.target.checked)} /> Follow
        </label>
        <span className="figures ml-auto px-1 text-xs text-faint" data-testid="entries">
          {shown.length.toLocaleString('en')} of {journal.entries.length.toLocaleString('en')} entries
          {journal.isRead ? '' : ', reading …'}
        </span>
      </div>
      <Table
        label="Journal"
        columns={COLUMNS}
        rows={shown}
        keyOf={(entry) => String(entry.sequence)}
        open={setOpen}
        follow={follow}
        isChosen={(entry) => entry.sequence === moment}
      />
      {open && (
        <Dialog title={`Entry ${open.sequence}: ${open.type}`} close={() => setOpen(null)} wide>
          <Code value={open} label="Entry" />
          <button
            type="button"
            className="mt-3 text-accent underline"
            onClick={() => {
              goTo(open.sequence)
              setOpen(null)
            }}
          >
            Show the execution as it was after this entry
          </button>
        </Dialog>
      )}
    </div>
  )
}

const COLUMNS: Column<JournalEntry>[] = [
  { name: '#', width: '3.6rem', right: true, cell: (entry) => <span className="figures text-xs text-faint">{entry.sequence}</span> },
  { name: 'After', width: '5.2rem', right: true, cell: (entry) => <span className="figures text-xs text-soft">{span(entry.timestamp)}</span> },
  {
    name: 'What',
    width: 'minmax(9rem, 14rem)',
    cell: (entry) => {
      const look = lookOf(entry.level)
      return (
        <span className="flex items-center gap-1.5">
          <look.icon size={12} aria-label={entry.level} className={`shrink-0 ${TEXT[look.hue]}`} />
          <span className="truncate">{entry.type}</span>
        </span>
      )
    },
  },
  { name: 'Step', width: 'minmax(5rem, 10rem)', cell: (entry) => <span className="text-soft">{entry.stepId ?? ''}</span> },
  { name: 'Data', width: 'minmax(0, 1fr)', wideOnly: true, cell: (entry) => <code className="font-mono text-xs text-faint">{JSON.stringify(entry.data)}</code> },
]

function Filter({ label, all, value, set, options }: { label: string; all: string; value: string; set: (value: string) => void; options: string[] }) {
  return (
    <select aria-label={label} className="field w-auto max-w-44" value={value} onChange={(event) => set(event.target.value)}>
      <option value="">{all}</option>
      {options.map((option) => <option key={option}>{option}</option>)}
    </select>
  )
}
