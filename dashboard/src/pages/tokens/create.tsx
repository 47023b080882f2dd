// The form for a new token, and the one time its secret is shown.
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { createToken } from '../../api/tokens'
import { Button, Copy, Field } from '../../ui/basics'
import { Dialog } from '../../ui/dialog'
import { useAct } from '../executions/acts'
import { words } from './scope'

const ROLES = ['viewer', 'agent', 'operator', 'editor', 'approver', 'worker', 'admin', 'owner', 'planner', 'executor']

const LIVES = { '30 days': 30, '90 days': 90, 'One year': 365, Never: null } as const
const DAY_MS = 86_400_000

/** The secret, for the only time. */
export function Secret({ token, close }: { token: string; close: () => void }) {
  return (
    <Dialog title="Copy the token now" close={close}>
      <p className="mb-3 text-soft">This is the only time it is shown. The server keeps a hash of it.</p>
      <p className="flex items-center gap-2 rounded bg-raised px-2 py-1.5">
        <code className="min-w-0 flex-1 font-mono text-xs break-all">{token}</code>
        <Copy text={token} label="Copy the token" />
      </p>
      <div className="mt-3 flex justify-end"><Button tone="accent" onClick={close}>Done</Button></div>
    </Dialog>
  )
}

export function NewTokenDialog({ close, created }: { close: () => void; created: () => void }) {
  const [name, setName] = useState('')
  const [tenant, setTenant] = useState('')
  const [roles, setRoles] = useState<string[]>(['viewer'])
  const [scope, setScope] = useState('')
  const [isReused, setReused] = useState(false)
  const [life, setLife] = useState<keyof typeof LIVES>('90 days')
  const [secret, setSecret] = useState<string | null>(null)
  const [isBusy, act] = useAct()
  const choose = (role: string, isChosen: boolean) => setRoles(isChosen ? [...roles, role] : roles.filter((other) => other !== role))
  const create = () =>
    act(async () => {
      const days = LIVES[life]
      const made = await createToken({
        name: name.trim(),
        roles,
        scope: words(scope),
        ...(isReused ? { reuseName: true as const } : {}),
        ...(tenant.trim() === '' ? {} : { tenant: tenant.trim() }),
        ...(days === null ? {} : { expiresAt: new Date(Date.now() + days * DAY_MS).toISOString() }),
      })
      created()
      setSecret(made.token)
    })
  if (secret !== null) return <Secret token={secret} close={close} />
  return (
    <Dialog title="New token" close={close}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          create()
        }}
      >
        <Field label="Name" hint="Who shows it: the name in lists, logs and the audit trail.">
          <input className="field" required pattern="[A-Za-z0-9][A-Za-z0-9._@:\-]{0,63}" title="Letters, digits and . _ @ : -" value={name} onChange={(event) => setName(event.target.value)} />
        </Field>
        <label className="flex items-start gap-2">
          <input type="checkbox" className="mt-1" checked={isReused} onChange={(event) => setReused(event.target.checked)} />
          <span>
            Reuse the name of a revoked token
            <span className="block text-xs text-soft">The new token takes over its sessions, schedules and workflows. Needs the role owner, and is on record.</span>
          </span>
        </label>
        <fieldset>
          <legend className="mb-1 text-xs text-soft">Roles you have yourself</legend>
          <div className="grid grid-cols-2 gap-1 sm:grid-cols-3">
            {ROLES.map((role) => (
              <label key={role} className="flex items-center gap-2">
                <input type="checkbox" checked={roles.includes(role)} onChange={(event) => choose(role, event.target.checked)} /> {role}
              </label>
            ))}
          </div>
        </fieldset>
        <Field label="Scope" hint="Empty: everything its roles allow. Else faces and actions, such as face:mcp or executions.*">
          <input className="field font-mono" value={scope} onChange={(event) => setScope(event.target.value)} />
        </Field>
        <div className="grid gap-3 sm:grid-cols-2">
          <Field label="Tenant" hint="Empty: your own.">
            <input className="field" maxLength={128} value={tenant} onChange={(event) => setTenant(event.target.value)} />
          </Field>
          <Field label="Expires">
            <select className="field" value={life} onChange={(event) => setLife(event.target.value as keyof typeof LIVES)}>
              {Object.keys(LIVES).map((one) => <option key={one}>{one}</option>)}
            </select>
          </Field>
        </div>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Cancel</Button>
          <Button type="submit" tone="accent" icon={Plus} busy={isBusy}>Create</Button>
        </div>
      </form>
    </Dialog>
  )
}
