// Other MCP servers whose tools are offered here: how it stands with them, and what they have changed behind our backs.
import { useQuery } from '@tanstack/react-query'
import { Plus, RefreshCw, ScrollText, ShieldAlert, ShieldCheck, Trash2 } from 'lucide-react'
import { useMemo, useState } from 'react'
import { accept, quarantined, restartServer, servers, type Quarantined, type Server } from '../../api/servers'
import { queries } from '../../app/fresh'
import { Button, Panel, Trouble, Waiting } from '../../ui/basics'
import { Changes } from '../../ui/changes'
import { diff } from '../../ui/diff'
import { Dialog } from '../../ui/dialog'
import { StateBadge } from '../../ui/state'
import { say } from '../../ui/toast'
import { useAct } from '../executions/acts'
import { AddServer, reloadServers, RemoveServer, ServerLogs } from './server-dialogs'

const EVERY_MS = 10_000

const STATES: Record<Server['phase'], string> = { idle: 'paused', running: 'healthy', starting: 'queued', waiting: 'failed', stopped: 'cancelled' }
const WORDS: Record<Server['phase'], string> = { idle: 'idle, starts when called', running: 'running', starting: 'starting', waiting: 'down, tried again', stopped: 'stopped' }

export function Servers() {
  const found = useQuery({ queryKey: ['servers'], queryFn: servers, refetchInterval: EVERY_MS })
  const [look, setLook] = useState<{ server: string; tool: string } | null>(null)
  const [isAdding, setAdding] = useState(false)
  const list = found.data?.servers ?? []
  if (found.error && !found.data) return <Panel title="Other servers" flush><Trouble error={found.error} /></Panel>
  return (
    <Panel title="Other servers" flush actions={<Button icon={Plus} onClick={() => setAdding(true)}>Add a server</Button>}>
      {list.length === 0 ? (
        <p className="px-3.5 py-3 text-soft">None yet. Add one, or name it in <code className="font-mono text-xs">mcpServers</code> of the settings.</p>
      ) : (
        <ul aria-label="Other servers" className="divide-y divide-line/60">
          {list.map((one) => <One key={one.name} server={one} look={(tool) => setLook({ server: one.name, tool })} />)}
        </ul>
      )}
      {look && <Change {...look} close={() => setLook(null)} />}
      {isAdding && <AddServer close={() => setAdding(false)} />}
    </Panel>
  )
}

function One({ server, look }: { server: Server; look: (tool: string) => void }) {
  const [dialog, setDialog] = useState<'logs' | 'remove' | null>(null)
  const [isBusy, act] = useAct()
  const restart = () =>
    act(async () => {
      await restartServer(server.name)
      say(`${server.name} restarts.`)
      await reloadServers()
    })
  return (
    <li className="px-3.5 py-2">
      <p className="flex items-center justify-between gap-2"><span className="truncate font-medium">{server.name}</span><StateBadge state={STATES[server.phase]} label={WORDS[server.phase]} /></p>
      <p className="figures text-xs text-soft">{server.tools === 1 ? '1 tool' : `${server.tools} tools`} · {server.removable ? 'added' : 'from the settings'}{server.shared && ' · shared by all tenants'}</p>
      {server.quarantined.map((tool) => (
        <p key={tool} className="mt-1 flex items-center justify-between gap-2 text-xs text-bad">
          <span className="flex min-w-0 items-center gap-1"><ShieldAlert size={13} aria-hidden className="shrink-0" /><span className="truncate">{tool} is quarantined</span></span>
          <Button tone="danger" onClick={() => look(tool)}>Review</Button>
        </p>
      ))}
      {server.refused.map((one) => <p key={one.tool} className="mt-1 text-xs break-words text-bad">{one.tool} cannot be taken: {one.why}</p>)}
      {server.problem && <p className="mt-1 text-xs break-words text-bad">{server.problem}{server.exitCode != null && ` (exit code ${server.exitCode})`}</p>}
      {server.nextAttemptAt && <p className="figures mt-1 text-xs text-soft">Next attempt {server.nextAttemptAt}</p>}
      {server.lastError && server.lastError.message !== server.problem && <p className="mt-1 text-xs break-words text-soft">Last error {server.lastError.at}: {server.lastError.message}</p>}
      {server.problem && server.stderr && server.stderr.length > 0 && <pre className="mt-1 overflow-x-auto text-xs text-soft">{server.stderr.join('\n')}</pre>}
      <div className="mt-1.5 flex flex-wrap gap-1.5">
        <Button icon={RefreshCw} busy={isBusy} aria-label={`Restart ${server.name}`} onClick={restart}>Restart</Button>
        <Button icon={ScrollText} aria-label={`Logs of ${server.name}`} onClick={() => setDialog('logs')}>Logs</Button>
        {server.removable && <Button icon={Trash2} tone="danger" aria-label={`Remove ${server.name}`} onClick={() => setDialog('remove')}>Remove</Button>}
      </div>
      {dialog === 'logs' && <ServerLogs name={server.name} close={() => setDialog(null)} />}
      {dialog === 'remove' && <RemoveServer name={server.name} close={() => setDialog(null)} />}
    </li>
  )
}

/** Both definitions, line by line, and the decision. */
function Change({ server, tool, close }: { server: string; tool: string; close: () => void }) {
  const found = useQuery({ queryKey: ['quarantined'], queryFn: quarantined, staleTime: 0 })
  const one = found.data?.tools.find((each) => each.server === server && each.tool === tool)
  return (
    <Dialog title={`${server}.${tool} has changed`} close={close} wide>
      {one ? <Decision tool={one} close={close} /> : found.error ? <Trouble error={found.error} again={() => void found.refetch()} /> : found.isFetching ? <Waiting /> : <p className="text-soft">It is as it was accepted again; there is nothing to decide.</p>}
    </Dialog>
  )
}

const text = (definition: unknown): string => JSON.stringify(definition, null, 2)

const LOOKS = 20
const LOOK_MS = 250

/** The other server is asked for its tools anew once one is accepted: a moment, and it is offered. */
async function offered({ server, tool }: Quarantined): Promise<void> {
  for (let look = 0; look < LOOKS; look += 1) {
    const found = (await servers()).servers.find((one) => one.name === server)
    if (!found?.quarantined.includes(tool)) return
    await new Promise((later) => setTimeout(later, LOOK_MS))
  }
}

function Decision({ tool, close }: { tool: Quarantined; close: () => void }) {
  const [isBusy, act] = useAct()
  const lines = useMemo(() => diff(text(tool.acceptedDefinition), text(tool.changedDefinition)), [tool])
  const take = () =>
    act(async () => {
      try {
        await accept(tool)
        await offered(tool)
        say(`${tool.server}.${tool.tool} is accepted as shown.`)
        close()
      } finally {
        // Whether it went well or it has changed again meanwhile: what is shown is what is.
        await Promise.all(['quarantined', 'servers', 'tools'].map((key) => queries.invalidateQueries({ queryKey: [key] })))
      }
    })
  return (
    <div className="flex flex-col gap-3">
      <p className="text-soft">
        A model reads this definition and does what it says. Until you accept the change, calls of the tool are answered <code className="font-mono text-xs">QUARANTINED</code>.
      </p>
      <Changes lines={lines} />
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={close}>Leave it in quarantine</Button>
        <Button tone="accent" icon={ShieldCheck} busy={isBusy} onClick={take}>Accept this change</Button>
      </div>
    </div>
  )
}
