// API tokens: who may call this server, as what, and when they last did.
import { useInfiniteQuery } from '@tanstack/react-query'
import { Ban, KeyRound, Plus, RotateCw } from 'lucide-react'
import { useMemo, useState } from 'react'
import { revokeToken, rotateToken, tokens, type ApiToken } from '../../api/tokens'
import { queries } from '../../app/fresh'
import { Button, Empty, Field, PageHead, Trouble, Waiting } from '../../ui/basics'
import { Dialog } from '../../ui/dialog'
import { Badge } from '../../ui/state'
import { Ago } from '../../ui/time'
import { say } from '../../ui/toast'
import { useAct } from '../executions/acts'
import { NewTokenDialog, Secret } from './create'

const reload = () => queries.invalidateQueries({ queryKey: ['tokens'] })

const HUES = { active: 'good', expired: 'wait', revoked: 'bad' } as const

export default function Tokens() {
  const [isCreating, setCreating] = useState(false)
  const [isAll, setAll] = useState(false)
  const found = useInfiniteQuery({
    queryKey: ['tokens'],
    queryFn: ({ pageParam }) => tokens(pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: 30_000,
  })
  const rows = useMemo(
    () => (found.data?.pages.flatMap((page) => page.tokens) ?? []).filter((token) => isAll || token.status !== 'revoked'),
    [found.data, isAll],
  )
  return (
    <>
      <PageHead title="API tokens" about="Who may call this server, and as what. A token is shown once, when it is created.">
        <Button tone="accent" icon={Plus} onClick={() => setCreating(true)}>New token</Button>
      </PageHead>
      <label className="mb-3 flex items-center gap-2 text-soft">
        <input type="checkbox" checked={isAll} onChange={(event) => setAll(event.target.checked)} /> Show revoked tokens
      </label>
      {found.error && rows.length === 0 ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      {found.isPending && <Waiting what="Loading tokens" />}
      {found.data && rows.length === 0 && (
        <Empty icon={KeyRound} title="No tokens yet">
          <code className="mt-2 block rounded bg-raised px-2 py-1 font-mono text-xs">orchestr8 tokens create --name ci --role operator</code>
        </Empty>
      )}
      <ul aria-label="API tokens" className="flex flex-col gap-2">
        {rows.map((token) => <One key={token.id} token={token} />)}
      </ul>
      {found.hasNextPage && <Button className="mt-3" busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>Load more</Button>}
      {isCreating && <NewTokenDialog close={() => setCreating(false)} created={() => void reload()} />}
    </>
  )
}

function One({ token }: { token: ApiToken }) {
  const [open, setOpen] = useState<'rotate' | 'revoke' | null>(null)
  return (
    <li className="flex flex-wrap items-center gap-x-5 gap-y-2 rounded-lg border border-line bg-panel px-3.5 py-2.5">
      <div className="min-w-48 flex-1">
        <p className="flex flex-wrap items-center gap-2 font-medium">{token.name} <Badge hue={HUES[token.status]}>{token.status}</Badge></p>
        <p className="text-soft">
          {token.roles.join(', ')} in {token.tenant}
          {token.scope.length > 0 && <>, only {token.scope.map((entry) => <code key={entry} className="mr-1 font-mono text-xs">{entry}</code>)}</>}
        </p>
        <p className="text-xs text-soft"><code className="font-mono">o8_{token.id}_…</code> created by {token.createdBy} <Ago at={token.createdAt} /></p>
      </div>
      <p className="text-xs text-soft">last used {token.lastUsedAt ? <Ago at={token.lastUsedAt} /> : 'never'}</p>
      <p className="text-xs text-soft">expires {token.expiresAt ? <Ago at={token.expiresAt} /> : 'never'}</p>
      {token.status !== 'revoked' && (
        <div className="flex gap-1.5">
          <Button icon={RotateCw} onClick={() => setOpen('rotate')}>Rotate</Button>
          <Button icon={Ban} tone="danger" onClick={() => setOpen('revoke')}>Revoke</Button>
        </div>
      )}
      {open === 'rotate' && <Rotate token={token} close={() => setOpen(null)} />}
      {open === 'revoke' && <Revoke token={token} close={() => setOpen(null)} />}
    </li>
  )
}

const GRACES = { 'At once': 0, 'In one hour': 3_600_000, 'In one day': 86_400_000, 'In seven days': 604_800_000 } as const

function Rotate({ token, close }: { token: ApiToken; close: () => void }) {
  const [grace, setGrace] = useState<keyof typeof GRACES>('In one day')
  const [secret, setSecret] = useState<string | null>(null)
  const [isBusy, act] = useAct()
  const rotate = () =>
    act(async () => {
      setSecret((await rotateToken(token.id, GRACES[grace])).token)
      await reload()
    })
  if (secret !== null) return <Secret token={secret} close={close} />
  return (
    <Dialog title={`Rotate ${token.name}?`} close={close}>
      <p className="mb-3 text-soft">The token gets a new secret. Its name, roles and scope stay.</p>
      <Field label="The old secret ends">
        <select className="field" value={grace} onChange={(event) => setGrace(event.target.value as keyof typeof GRACES)}>
          {Object.keys(GRACES).map((one) => <option key={one}>{one}</option>)}
        </select>
      </Field>
      <div className="mt-3 flex justify-end gap-2">
        <Button onClick={close}>Cancel</Button>
        <Button tone="accent" icon={RotateCw} busy={isBusy} onClick={rotate}>Rotate</Button>
      </div>
    </Dialog>
  )
}

function Revoke({ token, close }: { token: ApiToken; close: () => void }) {
  const [isBusy, act] = useAct()
  const revoke = () =>
    act(async () => {
      await revokeToken(token.id)
      say(`${token.name} is revoked.`)
      close()
      await reload()
    })
  return (
    <Dialog title={`Revoke ${token.name}?`} close={close}>
      <p className="mb-3 text-soft">It stops working at once, and its open connections are closed. This cannot be undone.</p>
      <div className="flex justify-end gap-2">
        <Button onClick={close}>Cancel</Button>
        <Button tone="danger" icon={Ban} busy={isBusy} onClick={revoke}>Revoke</Button>
      </div>
    </Dialog>
  )
}
