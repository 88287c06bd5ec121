-- Generated from migrations/ by tools/generate_tables.py. Do not edit.
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE federation_schema (
	id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	compat INTEGER NOT NULL, 
	CONSTRAINT pk_federation_schema PRIMARY KEY (id)
);
CREATE TABLE store_state (
	id INTEGER NOT NULL, 
	revision BIGINT NOT NULL, 
	compacted BIGINT NOT NULL, 
	purged BIGINT NOT NULL, 
	CONSTRAINT pk_store_state PRIMARY KEY (id)
);
CREATE TABLE store_log (
	revision INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	type SMALLINT NOT NULL, 
	create_revision BIGINT NOT NULL, 
	previous_revision BIGINT, 
	value BLOB NOT NULL, checksum BIGINT, 
	CONSTRAINT pk_store_log PRIMARY KEY (revision)
);
CREATE TABLE decision (
	id INTEGER NOT NULL, 
	at_us BIGINT NOT NULL, 
	api_group TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	namespace TEXT NOT NULL, 
	name TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	duration_ms FLOAT NOT NULL, 
	explanation BLOB NOT NULL, repeats INTEGER DEFAULT '0' NOT NULL, last_at_us BIGINT, explanation_bytes INTEGER, 
	CONSTRAINT pk_decision PRIMARY KEY (id)
);
CREATE INDEX ix_decision_filters ON decision (id, api_group, kind, namespace, name, outcome, at_us, explanation_bytes);
CREATE INDEX ix_decision_name_namespace_kind_id ON decision (name, namespace, kind, id);
CREATE TABLE decision_inputs (
	id INTEGER NOT NULL, 
	segment BIGINT NOT NULL, 
	number INTEGER NOT NULL, 
	first_us BIGINT NOT NULL, 
	last_us BIGINT NOT NULL, 
	decisions INTEGER NOT NULL, 
	content_bytes INTEGER NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_decision_inputs PRIMARY KEY (id)
);
CREATE INDEX ix_decision_inputs_segment ON decision_inputs (segment, number, last_us, content_bytes);
INSERT INTO alembic_version VALUES ('0006');
INSERT INTO federation_schema VALUES (1, 6, 1);
INSERT INTO store_state VALUES (1, 0, 0, 0);
