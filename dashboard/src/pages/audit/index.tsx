// The audit trail: who did what, how it ended, and whether the record of it is whole.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { ScrollText, ShieldAlert, ShieldCheck } from 'lucide-react'
import { useMemo, useState } from 'react'
import { audit, verifyAudit, type Entry } from '../../api/audit'
import { useQueryValue } from '../../app/router'
import { Button, Copy, Empty, PageHead, Panel, Trouble, Waiting } from '../../ui/basics'
import { Code } from '../../ui/code'
import { Dialog } from '../../ui/dialog'
import { Badge, StateBadge } from '../../ui/state'
import { Table, type Column } from '../../ui/table'
import { Ago } from '../../ui/time'

const ENDS = ['success', 'tool_error', 'timeout', 'late_completed', 'aborted', 'disconnected_completed', 'refused', 'input_required']

/** The words of the trail for how something ended, as the other pages say it. */
const STATES: Record<string, string> = {
  success: 'completed', tool_error: 'failed', timeout: 'failed', late_completed: 'waiting', aborted: 'cancelled', disconnected_completed: 'completed', refused: 'failed', input_required: 'waiting',
}

const COLUMNS: Column<Entry>[] = [
  { name: '#', width: '4.5rem', right: true, wideOnly: true, cell: (entry) => <span className="figures text-xs text-faint">{entry.id}</span> },
  { name: 'Action', width: 'minmax(10rem, 1.5fr)', cell: (entry) => <Action entry={entry} /> },
  { name: 'Who', width: 'minmax(0, 1fr)', wideOnly: true, cell: (entry) => <span className="text-soft">{entry.principal}</span> },
  { name: 'Over', width: '6rem', wideOnly: true, cell: (entry) => <span className="text-soft">{entry.transport}</span> },
  { name: 'End', width: 'minmax(6.5rem, 8.5rem)', cell: (entry) => <StateBadge state={STATES[entry.end] ?? entry.end} label={entry.errorCode ?? entry.end} /> },
  { name: 'When', width: '6.5rem', right: true, cell: (entry) => <span className="text-soft"><Ago at={entry.at} /></span> },
]

/** An entry that is not what was written is marked: nothing of it can be relied on. */
function Action({ entry }: { entry: Entry }) {
  return (
    <span className="flex min-w-0 items-center gap-2">
      <span className="truncate font-medium">{entry.action}</span>
      {!entry.intact && <Badge hue="bad">Changed</Badge>}
    </span>
  )
}

export default function Audit() {
  const [action, setAction] = useQueryValue('action')
  const [principal, setPrincipal] = useQueryValue('principal')
  const [end, setEnd] = useQueryValue('end')
  const [open, setOpen] = useState<Entry | null>(null)
  const found = useInfiniteQuery({
    queryKey: ['audit', action, principal, end],
    queryFn: ({ pageParam }) => audit({ action, principal, end }, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: 30_000,
  })
  const rows = useMemo(() => found.data?.pages.flatMap((page) => page.entries) ?? [], [found.data])
  return (
    <>
      <PageHead title="Audit" about="Who did what, and how it ended. Each entry is sealed with the one before it." />
      <Whole />
      <div role="search" className="mb-3 flex flex-wrap gap-2">
        <input type="search" aria-label="Action" placeholder="Action  ( / )" className="field flex-1" value={action} onChange={(event) => setAction(event.target.value)} />
        <input aria-label="Who" placeholder="Who" className="field flex-1" value={principal} onChange={(event) => setPrincipal(event.target.value)} />
        <select aria-label="End" className="field w-auto max-md:flex-[1_1_100%]" value={end} onChange={(event) => setEnd(event.target.value)}>
          <option value="">Any end</option>
          {ENDS.map((one) => <option key={one}>{one}</option>)}
        </select>
      </div>
      <div className="flex min-h-80 flex-1 flex-col overflow-hidden rounded-lg border border-line bg-panel">
        {found.error && rows.length === 0 ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
        {found.isPending && <Waiting />}
        {found.data && !found.error && rows.length === 0 && (
          <Empty icon={ScrollText} title={action || principal || end ? 'Nothing fits these filters' : 'Nothing is on record yet'}>What changes something is written here, with a hash of what was asked.</Empty>
        )}
        {rows.length > 0 && (
          <Table
            label="Audit trail"
            columns={COLUMNS}
            rows={rows}
            keyOf={(entry) => entry.id}
            open={setOpen}
            more={found.hasNextPage && !found.isFetchingNextPage ? () => void found.fetchNextPage() : undefined}
          />
        )}
      </div>
      {open && (
        <Dialog title={`Entry ${open.id}`} close={() => setOpen(null)} wide>
          {!open.intact && <p role="alert" className="mb-3 rounded bg-bad-wash px-2 py-1.5 text-bad">This entry was changed in the data file. What it says cannot be relied on.</p>}
          <Code value={open} label="Entry" />
        </Dialog>
      )}
    </>
  )
}

function Whole() {
  const proof = useQuery({ queryKey: ['audit-proof'], queryFn: verifyAudit, staleTime: 60_000 })
  if (!proof.data) return proof.error ? <Trouble error={proof.error} /> : null
  const { whole, entries, head, brokenAt, what } = proof.data
  const Icon = whole ? ShieldCheck : ShieldAlert
  return (
    <Panel className="mb-3">
      <div className={`flex flex-wrap items-center gap-3 ${whole ? 'text-good' : 'text-bad'}`}>
        <Icon size={18} aria-hidden />
        <p className="min-w-48 flex-1">
          <strong className="font-semibold">{whole ? 'The trail is whole.' : `Entry ${brokenAt} does not hold: ${what}.`}</strong>{' '}
          {whole && <span className="figures text-soft">{(entries ?? 0).toLocaleString('en')} entries, each sealed with the one before.</span>}
        </p>
        {head && <span className="flex min-w-0 items-center gap-1 text-xs text-soft">head <code className="max-w-40 truncate font-mono">{head}</code><Copy text={head} label="Copy the head" /></span>}
        <Button busy={proof.isFetching} onClick={() => void proof.refetch()}>Verify again</Button>
      </div>
    </Panel>
  )
}
