// Plans of governed workspaces: which wait for a decision, and deciding.
import { ask, type Schemas } from './client'

export type GovernedPlan = Schemas['GovernedPlan']
export type PlanStatus = GovernedPlan['status']

const one = (hash: string): string => `/v1/plans/${encodeURIComponent(hash)}`

export const plans = (status: PlanStatus | null) =>
  ask<{ plans: GovernedPlan[] }>('/v1/plans', { query: { status, limit: 200 } })

export const planText = (plan: GovernedPlan) => ask<GovernedPlan>(one(plan.hash), { query: { workspace: plan.workspace } })

export const decidePlan = (plan: GovernedPlan, decision: 'approve' | 'reject', comment: string) =>
  ask<GovernedPlan>(one(plan.hash), {
    body: { decision, workspace: plan.workspace, ...(comment.trim() === '' ? {} : { comment: comment.trim() }) },
  })
