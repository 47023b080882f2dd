// Plans of governed workspaces: agents propose them, people approve or reject them here.
import { useQuery } from '@tanstack/react-query'
import { Ban, Check, ClipboardCheck, FileText } from 'lucide-react'
import { useState } from 'react'
import { decidePlan, planText, plans, type GovernedPlan } from '../../api/plans'
import { queries } from '../../app/fresh'
import { Button, Empty, Facts, Field, PageHead, Trouble, Waiting } from '../../ui/basics'
import { Code } from '../../ui/code'
import { Dialog } from '../../ui/dialog'
import { Badge } from '../../ui/state'
import { Ago } from '../../ui/time'
import { say } from '../../ui/toast'
import { useAct } from '../executions/acts'

const HUES = { waiting: 'wait', approved: 'good', rejected: 'bad' } as const

export default function Plans() {
  const [isAll, setAll] = useState(false)
  const status = isAll ? null : 'waiting'
  const found = useQuery({ queryKey: ['plans', status], queryFn: () => plans(status), refetchInterval: 10_000 })
  const list = found.data?.plans
  return (
    <>
      <PageHead title="Plans" about="What agents propose to write in governed workspaces. Files are written within an approved plan only." />
      <label className="mb-3 flex items-center gap-2 text-soft">
        <input type="checkbox" checked={isAll} onChange={(event) => setAll(event.target.checked)} /> Show decided plans
      </label>
      {found.error && !list ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      {found.isPending && <Waiting what="Loading plans" />}
      {list?.length === 0 && (
        <Empty icon={ClipboardCheck} title={isAll ? 'No plans yet' : 'No plan waits for a decision'}>
          <code className="mt-2 block rounded bg-raised px-2 py-1 font-mono text-xs">orchestr8 mcp --governed planner</code>
        </Empty>
      )}
      {list && list.length > 0 && (
        <ul aria-label="Plans" className="flex flex-col gap-2">
          {list.map((plan) => <Row key={`${plan.workspace} ${plan.hash}`} plan={plan} />)}
        </ul>
      )}
    </>
  )
}

function Row({ plan }: { plan: GovernedPlan }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <li className="flex flex-wrap items-center gap-x-5 gap-y-2 rounded-lg border border-line bg-panel px-3.5 py-2.5">
      <div className="min-w-48 flex-1">
        <p className="flex flex-wrap items-center gap-2 font-medium">{plan.title} <Badge hue={HUES[plan.status]}>{plan.status}</Badge></p>
        <p className="break-all text-soft"><code className="font-mono text-xs">{plan.hash.slice(0, 12)}</code> in {plan.workspace}</p>
        <p className="text-xs text-soft">
          proposed by {plan.proposer ?? 'an unknown principal'} <Ago at={plan.proposedAt} />
          {plan.decidedBy && plan.decidedAt && <> · {plan.status} by {plan.decidedBy} <Ago at={plan.decidedAt} /></>}
        </p>
      </div>
      <Button icon={FileText} onClick={() => setOpen(true)}>{plan.status === 'waiting' ? 'Review' : 'Show'}</Button>
      {isOpen && <Review plan={plan} close={() => setOpen(false)} />}
    </li>
  )
}

function Review({ plan, close }: { plan: GovernedPlan; close: () => void }) {
  const [comment, setComment] = useState('')
  const [isBusy, act] = useAct()
  const found = useQuery({ queryKey: ['plan', plan.workspace, plan.hash], queryFn: () => planText(plan) })
  const decide = (decision: 'approve' | 'reject') =>
    act(async () => {
      const decided = await decidePlan(plan, decision, comment)
      say(`${decided.title} is ${decided.status}.`)
      close()
      await queries.invalidateQueries({ queryKey: ['plans'] })
    })
  return (
    <Dialog title={plan.title} close={close} wide>
      <Facts of={[['Workspace', plan.workspace], ['Hash', <code key="hash" className="break-all font-mono text-xs">{plan.hash}</code>], ['Proposed by', plan.proposer ?? 'unknown'], ['Comment', plan.comment ?? '']]} />
      {found.error ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      {found.isPending && <Waiting what="Loading the plan" />}
      {found.data && <Code label="Plan" value={found.data.content ?? ''} className="my-3 max-h-96" />}
      <Field label="Comment" hint="It is recorded with the decision.">
        <input className="field" maxLength={4096} value={comment} onChange={(event) => setComment(event.target.value)} />
      </Field>
      <div className="mt-3 flex justify-end gap-2">
        <Button onClick={close}>Cancel</Button>
        {plan.status !== 'rejected' && <Button tone="danger" icon={Ban} busy={isBusy} onClick={() => decide('reject')}>{plan.status === 'approved' ? 'Withdraw approval' : 'Reject'}</Button>}
        {plan.status !== 'approved' && <Button tone="accent" icon={Check} busy={isBusy} disabled={!found.data} onClick={() => decide('approve')}>Approve</Button>}
      </div>
    </Dialog>
  )
}
