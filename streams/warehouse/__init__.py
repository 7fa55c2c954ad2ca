"""Every event in ClickHouse, one table a topic, for people and dashboards; nothing decides by it."""
