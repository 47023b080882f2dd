// Sessions: conversations with agents, live.
import { useQuery } from '@tanstack/react-query'
import { MessagesSquare, Plus } from 'lucide-react'
import { useEffect } from 'react'
import { command, hold, listSessions, onChange, useSessionLine, type SessionInfo } from '../../api/session'
import { queries } from '../../app/fresh'
import { go, Link } from '../../app/router'
import { Button, Empty, PageHead, Panel, Trouble, Waiting } from '../../ui/basics'
import { StateBadge } from '../../ui/state'
import { Ago } from '../../ui/time'
import { useAct } from '../executions/acts'
import { Talk } from './talk'

export default function Sessions({ parts }: { parts: string[] }) {
  useEffect(hold, [])
  const opened = useSessionLine((line) => line.opened)
  const found = useQuery({ queryKey: ['sessions', opened], queryFn: listSessions, placeholderData: (before) => before, refetchInterval: 30_000 })
  useEffect(() => onChange(() => void queries.invalidateQueries({ queryKey: ['sessions'] })), [])
  const [isBusy, act] = useAct()
  const begin = () =>
    act(async () => {
      const made = await command<{ sessionId: string }>('create_session')
      await queries.invalidateQueries({ queryKey: ['sessions'] })
      go(`/sessions/${encodeURIComponent(made.sessionId)}`)
    })
  const list = found.data?.sessions
  return (
    <>
      <PageHead title="Sessions" about="Conversations with an agent, kept on the server. Several people can follow one.">
        <Button icon={Plus} tone="accent" busy={isBusy} onClick={begin}>New session</Button>
      </PageHead>
      {found.error && !list ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      {!list && !found.error && <Waiting what="Connecting" />}
      {list && (
        <div className="grid min-h-0 flex-1 gap-3.5 md:grid-cols-[15rem_1fr]">
          <Panel flush className={`min-h-0 self-start overflow-hidden ${parts[0] ? 'max-md:hidden' : ''}`}>
            {list.length === 0 ? (
              <Empty icon={MessagesSquare} title="No session yet">
                <code className="mt-2 block rounded bg-raised px-2 py-1 font-mono text-xs">orchestr8 chat --session first hello</code>
              </Empty>
            ) : (
              <nav aria-label="Sessions" className="max-h-[34rem] overflow-y-auto py-1">
                {list.map((one) => <Entry key={one.sessionId} session={one} isChosen={one.sessionId === parts[0]} />)}
              </nav>
            )}
          </Panel>
          {parts[0] === undefined ? (
            <div className="max-md:hidden"><Panel><Empty icon={MessagesSquare} title="Choose a session, or begin one" /></Panel></div>
          ) : (
            <Talk key={parts[0]} id={parts[0]} />
          )}
        </div>
      )}
    </>
  )
}

function Entry({ session, isChosen }: { session: SessionInfo; isChosen: boolean }) {
  return (
    <Link
      to={`/sessions/${encodeURIComponent(session.sessionId)}`}
      aria-current={isChosen ? 'true' : undefined}
      className={`block px-3.5 py-2 hover:bg-raised ${isChosen ? 'bg-accent-wash' : ''}`}
    >
      <span className="flex items-center justify-between gap-2">
        <span className="truncate font-medium">{session.name ?? session.sessionId}</span>
        {session.isStreaming && <StateBadge state="streaming" label="works" />}
      </span>
      <span className="figures flex justify-between text-xs text-soft">
        <span className="truncate">{session.model ? session.model.id : 'no model'} · {session.messageCount} messages</span>
        <Ago at={session.createdAt} />
      </span>
    </Link>
  )
}
