// Other MCP servers whose tools are offered here.
import { useQuery } from '@tanstack/react-query'
import { servers } from '../../api/servers'
import { Panel } from '../../ui/basics'
import { StateBadge } from '../../ui/state'

export function Servers() {
  const found = useQuery({ queryKey: ['servers'], queryFn: servers, refetchInterval: 10_000 })
  const list = found.data?.servers ?? []
  return (
    <Panel title="Other servers" flush>
      {list.length === 0 ? (
        <p className="px-3.5 py-3 text-soft">None is configured. Name them in <code className="font-mono text-xs">mcpServers</code>, and their tools are offered here.</p>
      ) : (
        <ul className="divide-y divide-line/60">
          {list.map((one) => (
            <li key={one.name} className="px-3.5 py-2">
              <p className="flex items-center justify-between gap-2"><span className="truncate font-medium">{one.name}</span><StateBadge state={one.phase === 'running' ? 'healthy' : one.phase === 'waiting' ? 'failed' : one.phase} label={one.phase} /></p>
              <p className="figures text-xs text-soft">{one.tools} tools{one.quarantined.length > 0 && <span className="text-bad">, {one.quarantined.length} quarantined: {one.quarantined.join(', ')}</span>}</p>
              {one.problem && <p className="text-xs break-words text-bad">{one.problem}</p>}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}
