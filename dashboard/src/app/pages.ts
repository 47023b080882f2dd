// Every page: its place, its key, its sign. To add one: a line here, and its file in pages/.
import { Activity, BookOpen, ClipboardCheck, KeyRound, Mail, MessagesSquare, PlayCircle, ShieldCheck, Workflow, Wrench, type LucideIcon } from 'lucide-react'
import { lazy, type ComponentType } from 'react'

export interface Page {
  name: string
  path: string
  key: string
  icon: LucideIcon
  Shown: ComponentType<{ parts: string[] }>
}

export const PAGES: Page[] = [
  { name: 'Overview', path: '/', key: 'o', icon: Activity, Shown: lazy(() => import('../pages/overview')) },
  { name: 'Executions', path: '/executions', key: 'e', icon: PlayCircle, Shown: lazy(() => import('../pages/executions')) },
  { name: 'Workflows', path: '/workflows', key: 'w', icon: Workflow, Shown: lazy(() => import('../pages/workflows')) },
  { name: 'Plans', path: '/plans', key: 'l', icon: ClipboardCheck, Shown: lazy(() => import('../pages/plans')) },
  { name: 'Sessions', path: '/sessions', key: 's', icon: MessagesSquare, Shown: lazy(() => import('../pages/sessions')) },
  { name: 'Tools', path: '/tools', key: 't', icon: Wrench, Shown: lazy(() => import('../pages/tools')) },
  { name: 'Knowledge', path: '/knowledge', key: 'k', icon: BookOpen, Shown: lazy(() => import('../pages/knowledge')) },
  { name: 'Messages', path: '/messages', key: 'm', icon: Mail, Shown: lazy(() => import('../pages/messages')) },
  { name: 'Secrets', path: '/secrets', key: 'c', icon: KeyRound, Shown: lazy(() => import('../pages/secrets')) },
  { name: 'Audit', path: '/audit', key: 'a', icon: ShieldCheck, Shown: lazy(() => import('../pages/audit')) },
  { name: 'API tokens', path: '/tokens', key: 'p', icon: KeyRound, Shown: lazy(() => import('../pages/tokens')) },
]

export const pageAt = (path: string): Page | undefined =>
  PAGES.find((page) => (page.path === '/' ? path === '/' : path === page.path || path.startsWith(`${page.path}/`)))
