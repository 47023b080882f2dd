// Executions: the list, or one of them.
import { lazy } from 'react'
import { List } from './list'

const One = lazy(() => import('./one'))

export default function Executions({ parts }: { parts: string[] }) {
  return parts[0] === undefined ? <List /> : <One key={parts[0]} id={parts[0]} />
}
