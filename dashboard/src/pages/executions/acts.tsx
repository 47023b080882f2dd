// What a person can do with an execution, and the questions that come before it.
import { Ban, GitFork, Pause, Play, RotateCcw } from 'lucide-react'
import { useState } from 'react'
import type { Approval, Execution, Json } from '../../api/client'
import { decide, fork, move, resolve, type Definition } from '../../api/workflows'
import { queries } from '../../app/fresh'
import { go } from '../../app/router'
import { Button, Field } from '../../ui/basics'
import { pretty } from '../../ui/code'
import { Dialog } from '../../ui/dialog'
import { SchemaForm } from '../../ui/schema-form'
import { complain, say } from '../../ui/toast'

/** Runs what a click asks for; says what went wrong, and keeps the button busy meanwhile. */
export function useAct(): [boolean, (work: () => Promise<unknown>) => void] {
  const [isBusy, setBusy] = useState(false)
  const act = (work: () => Promise<unknown>) => {
    setBusy(true)
    work()
      .catch(complain)
      .finally(() => setBusy(false))
  }
  return [isBusy, act]
}

const look = (id: string) => Promise.all([
  queries.invalidateQueries({ queryKey: ['execution', id] }),
  queries.invalidateQueries({ queryKey: ['approvals'] }),
])

export function Acts({ execution, askFork }: { execution: Execution; askFork: () => void }) {
  const [isBusy, act] = useAct()
  const [isCancelling, setCancelling] = useState(false)
  const id = execution.executionId
  const may = (...states: string[]) => states.includes(execution.status)
  const doIt = (what: 'pause' | 'resume' | 'retry', done: string) =>
    act(async () => {
      await move(id, what)
      say(done)
      await look(id)
    })
  return (
    <>
      {may('running', 'waiting', 'queued') && <Button icon={Pause} busy={isBusy} onClick={() => doIt('pause', 'Paused: nothing new begins.')}>Pause</Button>}
      {may('paused') && <Button icon={Play} tone="accent" busy={isBusy} onClick={() => doIt('resume', 'It goes on.')}>Resume</Button>}
      {may('failed', 'cancelled', 'compensated') && <Button icon={RotateCcw} tone="accent" busy={isBusy} onClick={() => doIt('retry', 'It goes on from what failed.')}>Retry</Button>}
      <Button icon={GitFork} onClick={askFork}>Fork</Button>
      {may('running', 'waiting', 'queued', 'paused') && <Button icon={Ban} tone="danger" onClick={() => setCancelling(true)}>Cancel</Button>}
      {may('compensating') && <Button icon={Ban} tone="danger" onClick={() => setCancelling(true)}>Stop the rollback</Button>}
      {isCancelling && <Cancel id={id} isRollback={execution.status === 'compensating'} close={() => setCancelling(false)} />}
    </>
  )
}

function Cancel({ id, isRollback, close }: { id: string; isRollback: boolean; close: () => void }) {
  const [reason, setReason] = useState('')
  const [isBusy, act] = useAct()
  return (
    <Dialog title={isRollback ? 'Stop the rollback?' : 'Cancel this execution?'} close={close}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          act(async () => {
            const why = reason.trim() === '' ? {} : { reason: reason.trim() }
            const answer = await move(id, 'cancel', isRollback ? { ...why, force: true } : why)
            say(isRollback ? (answer.message ?? 'The rollback is stopped.') : 'It is being cancelled.')
            close()
            await look(id)
          })
        }}
      >
        <p className="text-soft">
          {isRollback
            ? 'What is not undone yet stays done, and is listed.'
            : 'Steps that run get five seconds to clean up. What is done is undone only if the definition says so (compensateOn).'}
        </p>
        <Field label="Why (optional)"><input className="field" maxLength={1024} value={reason} onChange={(event) => setReason(event.target.value)} /></Field>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Let it run</Button>
          <Button type="submit" tone="danger" busy={isBusy}>{isRollback ? 'Stop it' : 'Cancel it'}</Button>
        </div>
      </form>
    </Dialog>
  )
}

export function Fork({ execution, definition, step, close }: { execution: Execution; definition: Definition; step: string; close: () => void }) {
  const [from, setFrom] = useState(step)
  const [variables, setVariables] = useState(() => pretty(execution.variables ?? {}))
  const written = definition.steps.find((one) => one.id === from)
  const original = pretty(written?.input ?? {})
  const [edited, setEdited] = useState<Record<string, string>>({})
  const input = edited[from] ?? original
  const [isBusy, act] = useAct()
  const problems = [wrongJson(variables), wrongJson(input)]
  const begin = () =>
    act(async () => {
      const body: Parameters<typeof fork>[2] = {}
      if (variables !== pretty(execution.variables ?? {})) body.variables = JSON.parse(variables) as Json
      if (input !== original) {
        const changed = JSON.parse(input) as Json
        body.workflow = { ...definition, steps: definition.steps.map((one) => (one.id === from ? { ...one, input: changed } : one)) }
      }
      const forked = await fork(execution.executionId, from, body)
      say('Forked: this is the new execution.')
      close()
      go(`/executions/${encodeURIComponent(forked.executionId)}`)
    })
  return (
    <Dialog title="Fork from a step" close={close} wide>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          begin()
        }}
      >
        <p className="text-soft">A new execution keeps what came before the step, and goes on from there. This one stays as it is.</p>
        <Field label="From step">
          <select className="field" value={from} onChange={(event) => setFrom(event.target.value)}>
            {execution.stepOrder.map((id) => <option key={id}>{id}</option>)}
          </select>
        </Field>
        <Field label="Its input" error={problems[1]} hint="May hold expressions such as ${variables.x}.">
          <textarea className="field min-h-28 font-mono text-xs" spellCheck={false} value={input} onChange={(event) => setEdited({ ...edited, [from]: event.target.value })} />
        </Field>
        <Field label="Variables" error={problems[0]}>
          <textarea className="field min-h-20 font-mono text-xs" spellCheck={false} value={variables} onChange={(event) => setVariables(event.target.value)} />
        </Field>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Close</Button>
          <Button type="submit" tone="accent" icon={GitFork} busy={isBusy} disabled={problems.some((one) => one !== undefined)}>Fork</Button>
        </div>
      </form>
    </Dialog>
  )
}

export function wrongJson(text: string): string | undefined {
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

export function Decide({ approval }: { approval: Approval }) {
  const [comment, setComment] = useState('')
  const [data, setData] = useState<Json>({})
  const [isBusy, act] = useAct()
  const form = approval.form as Json | null | undefined
  const answer = (decision: 'approve' | 'reject') =>
    act(async () => {
      await decide({
        token: approval.token,
        decision,
        ...(comment.trim() === '' ? {} : { comment: comment.trim() }),
        ...(form && decision === 'approve' ? { data } : {}),
      })
      say(decision === 'approve' ? 'Approved.' : 'Rejected.')
      await look(approval.executionId)
    })
  return (
    <div className="flex flex-col gap-3">
      <p className="text-[15px] font-medium">{approval.message ?? `Approve ${approval.stepId}?`}</p>
      {form && <SchemaForm schema={form} value={data} change={setData} />}
      <Field label="Comment (optional)"><input className="field" value={comment} onChange={(event) => setComment(event.target.value)} /></Field>
      <div className="flex gap-2">
        <Button tone="accent" busy={isBusy} onClick={() => answer('approve')}>Approve</Button>
        <Button tone="danger" busy={isBusy} onClick={() => answer('reject')}>Reject</Button>
      </div>
    </div>
  )
}

export function Resolve({ id, step }: { id: string; step: string }) {
  const [isBusy, act] = useAct()
  const settle = (action: 'retry' | 'fail' | 'complete') =>
    act(async () => {
      await resolve(id, step, action === 'complete' ? { action, output: null } : { action })
      await look(id)
    })
  return (
    <div className="flex flex-wrap gap-2">
      <Button busy={isBusy} onClick={() => settle('retry')}>Try it again</Button>
      <Button busy={isBusy} onClick={() => settle('complete')}>It was done</Button>
      <Button tone="danger" busy={isBusy} onClick={() => settle('fail')}>It failed</Button>
    </div>
  )
}
