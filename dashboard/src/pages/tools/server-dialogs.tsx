// Adding a server, removing one, and what its program wrote to stderr.
import { useQuery } from '@tanstack/react-query'
import { Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { addServer, removeServer, serverLogs } from '../../api/servers'
import { queries } from '../../app/fresh'
import { Button, Field, Trouble, Waiting } from '../../ui/basics'
import { Dialog } from '../../ui/dialog'
import { say } from '../../ui/toast'
import { useAct } from '../executions/acts'
import { entryOf, type EntryFields } from './entry'

export const reloadServers = () => Promise.all(['servers', 'tools'].map((key) => queries.invalidateQueries({ queryKey: [key] })))

const EMPTY: EntryFields = { name: '', kind: 'program', command: '', url: '', pairs: '' }

export function AddServer({ close }: { close: () => void }) {
  const [fields, setFields] = useState(EMPTY)
  const set = (change: Partial<EntryFields>) => setFields((before) => ({ ...before, ...change }))
  const [isBusy, act] = useAct()
  const isProgram = fields.kind === 'program'
  return (
    <Dialog title="Add a server" close={close}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          act(async () => {
            const added = await addServer(entryOf(fields))
            say(`${added.name} is added.`)
            close()
            await reloadServers()
          })
        }}
      >
        <Field label="Name" hint="Its tools are called name.tool.">
          <input className="field font-mono" required pattern="[A-Za-z0-9_\-]{1,32}" title="Letters, digits, _ and -" value={fields.name} onChange={(event) => set({ name: event.target.value })} />
        </Field>
        <Field label="Reached as">
          <select className="field" value={fields.kind} onChange={(event) => set({ kind: event.target.value === 'address' ? 'address' : 'program' })}>
            <option value="program">a program that is started here</option>
            <option value="address">an address</option>
          </select>
        </Field>
        {isProgram ? (
          <Field label="Command" hint="The program and its arguments. It runs as the user of this server.">
            <input className="field font-mono" required placeholder="npx -y @modelcontextprotocol/server-memory" value={fields.command} onChange={(event) => set({ command: event.target.value })} />
          </Field>
        ) : (
          <Field label="URL">
            <input className="field font-mono" type="url" required placeholder="https://search.example.org/mcp" value={fields.url} onChange={(event) => set({ url: event.target.value })} />
          </Field>
        )}
        <Field label={isProgram ? 'Environment (optional)' : 'Headers (optional)'} hint="One per line. Write ${NAME} for a named secret; credentials themselves are refused.">
          <textarea className="field min-h-16 font-mono text-xs" spellCheck={false} placeholder={isProgram ? 'API_TOKEN=${FILES_TOKEN}' : 'Authorization: Bearer ${SEARCH_TOKEN}'} value={fields.pairs} onChange={(event) => set({ pairs: event.target.value })} />
        </Field>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Close</Button>
          <Button type="submit" tone="accent" icon={Plus} busy={isBusy}>Add</Button>
        </div>
      </form>
    </Dialog>
  )
}

export function RemoveServer({ name, close }: { name: string; close: () => void }) {
  const [isBusy, act] = useAct()
  const remove = () =>
    act(async () => {
      await removeServer(name)
      say(`${name} is removed.`)
      close()
      await reloadServers()
    })
  return (
    <Dialog title={`Remove ${name}?`} close={close}>
      <p className="mb-3 text-soft">Its tools are gone, and with them what was accepted of their definitions.</p>
      <div className="flex justify-end gap-2">
        <Button onClick={close}>Keep it</Button>
        <Button tone="danger" icon={Trash2} busy={isBusy} onClick={remove}>Remove it</Button>
      </div>
    </Dialog>
  )
}

export function ServerLogs({ name, close }: { name: string; close: () => void }) {
  const found = useQuery({ queryKey: ['server-logs', name], queryFn: () => serverLogs(name), staleTime: 0 })
  const lines = found.data?.lines
  return (
    <Dialog title={`Logs of ${name}`} close={close} wide>
      {found.error && !lines ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      {found.isPending && <Waiting />}
      {lines?.length === 0 && <p className="text-soft">It has written nothing to stderr.</p>}
      {lines && lines.length > 0 && <pre className="max-h-96 overflow-auto text-xs">{lines.join('\n')}</pre>}
    </Dialog>
  )
}
