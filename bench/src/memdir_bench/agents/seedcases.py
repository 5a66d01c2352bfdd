"""Table 5.2 of the zero-AI design: ten cases over ten memories of a developer. The corpus is ours, in the table's shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PROJECT: Final = "my-saas"

MEMORIES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "jwt": (
        (
            "Authentication uses JWT with RS256. The auth middleware in src/middleware/auth.ts checks the access token of every"
            " request and puts the claims on req.user."
        ),
        ("auth", "backend", "security"),
    ),
    "refresh": (
        (
            "Login bug: rotating the refresh token was not atomic, so two requests at once logged people out. Fixed with a"
            " database transaction around the rotation in src/auth/refresh.ts."
        ),
        ("auth", "bug-fix"),
    ),
    "postgres": (
        (
            "PostgreSQL 16 is the main database. The schema is kept in prisma/schema.prisma, and the pool of 20 connections is"
            " configured in config/database.ts."
        ),
        ("database", "backend"),
    ),
    "deploy": (
        (
            "GitHub Actions is the deployment pipeline: a merge to main builds the Docker image, pushes it to ECR and rolls it"
            " out on ECS in eu-central-1."
        ),
        ("deployment", "ci"),
    ),
    "stripe": (
        (
            "Payment runs through Stripe. Each plan is a subscription of its own, and src/webhooks/stripe.ts handles"
            " invoice.paid and customer.subscription.deleted."
        ),
        ("payment", "backend"),
    ),
    "redis": (
        (
            "Redis caches sessions and the product list. The default TTL is 15 minutes, the eviction policy allkeys-lru, the"
            " client lives in src/lib/redis.ts."
        ),
        ("cache", "config"),
    ),
    "style": (
        (
            "The user prefers TypeScript in strict mode, two spaces, no semicolons, and small functions. Coding style is"
            " checked by Biome before each commit."
        ),
        ("preferences", "style"),
    ),
    "sendgrid": (
        (
            "Email goes out through SendGrid. The templates of every notification are MJML files in emails/, compiled by pnpm"
            " emails:build."
        ),
        ("email", "backend"),
    ),
    "frontend": (
        (
            "The frontend is React 19 with Vite and Tailwind. Server state is in TanStack Query, everything else in Zustand"
            " stores below src/stores."
        ),
        ("frontend", "architecture"),
    ),
    "testing": (
        (
            "Unit tests run with Vitest, end-to-end tests with Playwright against docker compose up; a test may not reach the"
            " network."
        ),
        ("testing",),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question and the memory that must come first; None: nothing must come."""

    name: str
    query: str
    expected: str | None
    tags: tuple[str, ...] = ()


CASES: Final = (
    Case(name="direct keyword match", query="JWT authentication middleware", expected="jwt"),
    Case(name="abbreviation: login to auth", query="login bug fix", expected="refresh"),
    Case(name="abbreviation: db to database", query="db schema config", expected="postgres"),
    Case(name="cross-domain", query="deployment pipeline docker", expected="deploy"),
    Case(name="tag-boosted ranking", query="authentication", tags=("bug-fix",), expected="refresh"),
    Case(name="negative", query="kubernetes helm terraform", expected=None),
    Case(name="abbreviation chain: billing to payment", query="billing subscription", expected="stripe"),
    Case(name="stemming: caching to cache", query="caching strategy redis", expected="redis"),
    Case(name="multi-topic", query="user preferences coding style", expected="style"),
    Case(name="precision check", query="email notification template", expected="sendgrid"),
)
