// Named secrets: their bindings, and forms to create, rotate and delete them. Values are write-only.
import { useQuery } from '@tanstack/react-query'
import { KeyRound, Plus, RefreshCw, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { deleteSecret, rotateSecret, secrets, setSecret, type Secret } from '../../api/secrets'
import { queries } from '../../app/fresh'
import { Button, Empty, Field, PageHead, Panel, Trouble, Waiting } from '../../ui/basics'
import { Dialog } from '../../ui/dialog'
import { Badge } from '../../ui/state'
import { Ago } from '../../ui/time'
import { say } from '../../ui/toast'
import { useAct } from '../executions/acts'
import { listOf } from './list-of'

const reload = () => queries.invalidateQueries({ queryKey: ['secrets'] })

export default function Secrets() {
  const found = useQuery({ queryKey: ['secrets'], queryFn: secrets })
  const [isCreating, setCreating] = useState(false)
  const list = found.data?.secrets
  return (
    <>
      <PageHead title="Secrets" about="Values that steps send to bound destinations. They are encrypted and never shown again.">
        <Button icon={Plus} tone="accent" onClick={() => setCreating(true)}>New secret</Button>
      </PageHead>
      {found.data?.locked && <Panel className="mb-3"><p className="text-bad">Stored secrets cannot be used: {found.data.locked}</p></Panel>}
      {found.error && !list ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      {found.isPending && <Waiting />}
      {list?.length === 0 && (
        <Panel>
          <Empty icon={KeyRound} title="No secrets yet">
            <code className="mt-2 block rounded bg-raised px-2 py-1 font-mono text-xs">orchestr8 secrets set NAME --workflow ID --to HOST:HEADER</code>
          </Empty>
        </Panel>
      )}
      {list && list.length > 0 && <ul className="flex flex-col gap-2">{list.map((one) => <Row key={one.name} secret={one} />)}</ul>}
      {isCreating && <Create close={() => setCreating(false)} />}
    </>
  )
}

function Row({ secret }: { secret: Secret }) {
  const [dialog, setDialog] = useState<'rotate' | 'delete' | null>(null)
  const isStored = secret.source === 'store'
  return (
    <li className="flex flex-wrap items-center gap-x-5 gap-y-2 rounded-lg border border-line bg-panel px-3.5 py-2.5">
      <div className="min-w-48 flex-1">
        <p className="flex items-center gap-2 font-medium">{secret.name} <Badge hue={isStored ? 'good' : 'idle'}>{isStored ? `version ${secret.version}` : 'in settings'}</Badge></p>
        <p className="break-words text-soft">to <code className="font-mono text-xs">{secret.to.join(', ')}</code></p>
        <p className="break-words text-xs text-soft">workflows: {secret.workflows.join(', ') || 'any'} · agents: {secret.agents.join(', ') || 'any'}</p>
      </div>
      {secret.rotatedAt && <p className="text-xs text-soft">rotated <Ago at={secret.rotatedAt} /></p>}
      {isStored && (
        <div className="flex gap-1.5">
          <Button icon={RefreshCw} onClick={() => setDialog('rotate')}>Rotate</Button>
          <Button icon={Trash2} tone="danger" aria-label={`Delete ${secret.name}`} title="Delete" onClick={() => setDialog('delete')} />
        </div>
      )}
      {dialog === 'rotate' && <Rotate name={secret.name} close={() => setDialog(null)} />}
      {dialog === 'delete' && <Delete name={secret.name} close={() => setDialog(null)} />}
    </li>
  )
}

/** What is typed here is sent and forgotten; browsers neither fill it in nor keep it. */
function Value({ value, set }: { value: string; set: (value: string) => void }) {
  return (
    <Field label="Value" hint="At least 8 characters. It is never shown again.">
      <input className="field font-mono" type="password" required minLength={8} maxLength={65_536} autoComplete="off" spellCheck={false} value={value} onChange={(event) => set(event.target.value)} />
    </Field>
  )
}

function Create({ close }: { close: () => void }) {
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  const [workflows, setWorkflows] = useState('')
  const [agents, setAgents] = useState('')
  const [to, setTo] = useState('')
  const [isBusy, act] = useAct()
  return (
    <Dialog title="New secret" close={close}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          act(async () => {
            const made = await setSecret({ name, value, workflows: listOf(workflows), agents: listOf(agents), to: listOf(to) })
            say(`${made.name} is stored.`)
            close()
            await reload()
          })
        }}
      >
        <Field label="Name" hint="Definitions use it as ${secrets.NAME}. One with the same name is replaced.">
          <input className="field font-mono" required pattern="[A-Za-z0-9_\-]{1,128}" title="Letters, digits, _ and -" value={name} onChange={(event) => setName(event.target.value)} />
        </Field>
        <Value value={value} set={setValue} />
        <Field label="Workflows" hint="Ids of stored workflows or hashes of definitions, separated by commas.">
          <input className="field" value={workflows} onChange={(event) => setWorkflows(event.target.value)} />
        </Field>
        <Field label="Agents" hint="Such as @orchestr8/http. Name a workflow or an agent, or both.">
          <input className="field" value={agents} onChange={(event) => setAgents(event.target.value)} />
        </Field>
        <Field label="Destinations" hint="HOST:HEADER, HOST:body or exec:TEMPLATE:VARIABLE, separated by commas.">
          <input className="field font-mono" required placeholder="api.example.com:Authorization" value={to} onChange={(event) => setTo(event.target.value)} />
        </Field>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Close</Button>
          <Button type="submit" tone="accent" icon={Plus} busy={isBusy}>Create</Button>
        </div>
      </form>
    </Dialog>
  )
}

function Rotate({ name, close }: { name: string; close: () => void }) {
  const [value, setValue] = useState('')
  const [isBusy, act] = useAct()
  return (
    <Dialog title={`Rotate ${name}`} close={close}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          act(async () => {
            await rotateSecret(name, value)
            say(`${name} has a new value.`)
            close()
            await reload()
          })
        }}
      >
        <Value value={value} set={setValue} />
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Close</Button>
          <Button type="submit" tone="accent" icon={RefreshCw} busy={isBusy}>Rotate</Button>
        </div>
      </form>
    </Dialog>
  )
}

function Delete({ name, close }: { name: string; close: () => void }) {
  const [isBusy, act] = useAct()
  const remove = () =>
    act(async () => {
      await deleteSecret(name)
      say(`${name} is deleted.`)
      close()
      await reload()
    })
  return (
    <Dialog title={`Delete ${name}?`} close={close}>
      <p className="mb-3 text-soft">Steps that use it will fail.</p>
      <div className="flex justify-end gap-2">
        <Button onClick={close}>Keep it</Button>
        <Button tone="danger" icon={Trash2} busy={isBusy} onClick={remove}>Delete it</Button>
      </div>
    </Dialog>
  )
}
